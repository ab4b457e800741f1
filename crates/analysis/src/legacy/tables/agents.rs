//! The results that count in the published tables, by project and agent, in the order of the data.

use isobench_schema::legacy::{HardClass, Quadrant};

use super::rows::{InTable, ResultRow};
use crate::legacy::rules::{is_hard_success, is_target_right};

/// The results of one agent in one project.
pub(super) struct Agent<'r> {
    pub(super) project: &'r str,
    pub(super) name: &'r str,
    pub(super) rows: Vec<&'r ResultRow>,
}

/// All of them.
pub(super) struct Agents<'r>(Vec<Agent<'r>>);

impl<'r> Agents<'r> {
    pub(super) fn of(results: &'r [ResultRow]) -> Self {
        let mut agents: Vec<Agent<'r>> = Vec::new();
        for row in results.iter().filter(|row| row.in_published_table == InTable::Yes) {
            let (project, name) = (row.project.as_str(), row.agent.as_str());
            match agents.iter_mut().find(|agent| agent.project == project && agent.name == name) {
                Some(agent) => agent.rows.push(row),
                None => agents.push(Agent { project, name, rows: vec![row] }),
            }
        }
        Self(agents)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Agent<'r>> {
        self.0.iter()
    }

    /// Returns every pair of agents of one project.
    pub(super) fn pairs(&self) -> impl Iterator<Item = (&Agent<'r>, &Agent<'r>)> {
        self.0.iter().enumerate().flat_map(|(place, one)| {
            let later = self.0.iter().skip(place + 1);
            later.filter(|other| other.project == one.project).map(move |other| (one, other))
        })
    }
}

impl Agent<'_> {
    pub(super) fn labels(&self) -> Vec<String> {
        vec![self.project.to_owned(), self.name.to_owned()]
    }

    pub(super) fn count(&self, is: impl Fn(&ResultRow) -> bool) -> usize {
        self.rows.iter().filter(|row| is(row)).count()
    }

    pub(super) fn in_quadrant(&self, quadrant: Quadrant) -> usize {
        self.count(|row| row.quadrant == quadrant)
    }

    pub(super) fn true_success(&self) -> usize {
        self.in_quadrant(Quadrant::TrueSuccess)
    }

    pub(super) fn hard_success(&self) -> usize {
        self.count(|row| is_hard_success(row.class))
    }

    pub(super) fn right_target(&self) -> usize {
        self.count(|row| is_target_right(&row.target))
    }

    /// Returns whether the agent truly succeeded at a commit; absent if it has no result there.
    pub(super) fn succeeded(&self, commit: &str) -> Option<bool> {
        let row = self.rows.iter().find(|row| row.commit == commit)?;
        Some(row.quadrant == Quadrant::TrueSuccess)
    }
}

/// Returns how many results of a list have that class.
pub(super) fn of_class(classes: &[HardClass], class: HardClass) -> usize {
    classes.iter().filter(|found| **found == class).count()
}
