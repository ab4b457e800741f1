//! How far things came on their way to a verdict, and what running them again could change: counted, whatever they are.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use isobench_schema::cause::FixKind;
use isobench_schema::coverage::{Coverage, CoverageLoss, CoverageStage, CoverageStep, RetryActor, RetryGroup};

/// The stage that something didn't reach, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The first stage that it didn't reach.
    pub stage: CoverageStage,
    /// The class, such as `wheel-not-found`.
    pub class: String,
    /// Why: a lower-case fragment without a full stop.
    pub reason: String,
}

/// What running something again needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    /// The kind of change.
    pub fix: FixKind,
    /// The change: a lower-case fragment without a full stop.
    pub change: String,
    /// Who can make it.
    pub actor: RetryActor,
}

/// One thing that is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Its name.
    pub name: String,
    /// Where it was lost; absent if it came through.
    pub loss: Option<Loss>,
    /// What running it again needs, if it failed.
    pub retry: Option<Retry>,
}

/// Returns who can make a change of a kind.
pub fn actor(fix: FixKind) -> RetryActor {
    match fix {
        FixKind::Recipe | FixKind::Option | FixKind::Build | FixKind::Retry => RetryActor::Isobench,
        FixKind::DatasetEdit => RetryActor::Dataset,
        FixKind::Devices | FixKind::Machine => RetryActor::Operator,
        FixKind::LookElsewhere => RetryActor::Person,
        FixKind::None => RetryActor::Nobody,
    }
}

/// Counts items at every stage, groups those that were lost by class, and failures by class, kind of change and actor.
/// `of` is what they are, in the plural.
pub fn coverage(of: &str, items: &[Item]) -> Coverage {
    let mut left: Vec<&Item> = items.iter().collect();
    let mut steps = Vec::new();
    for &stage in CoverageStage::ALL {
        let (lost, reached): (Vec<&Item>, Vec<&Item>) = left.into_iter().partition(|item| is_lost_at(item, stage));
        steps.push(CoverageStep { stage, reached: count(reached.len()), lost: losses(&lost) });
        left = reached;
    }
    Coverage { of: of.to_owned(), steps, retries: retries(items) }
}

fn is_lost_at(item: &Item, stage: CoverageStage) -> bool {
    item.loss.as_ref().is_some_and(|loss| loss.stage <= stage)
}

fn count(items: usize) -> u64 {
    u64::try_from(items).unwrap_or(u64::MAX)
}

fn losses(lost: &[&Item]) -> Vec<CoverageLoss> {
    let mut groups: BTreeMap<&str, CoverageLoss> = BTreeMap::new();
    for item in lost {
        let Some(Loss { class, reason, .. }) = &item.loss else { continue };
        let group = groups.entry(class).or_insert_with(|| CoverageLoss {
            class: class.clone(),
            reason: reason.clone(),
            differ: false,
            names: Vec::new(),
        });
        group.differ |= group.reason != *reason;
        group.names.push(item.name.clone());
    }
    let mut groups: Vec<CoverageLoss> = groups.into_values().collect();
    groups.sort_by_key(|group| Reverse(group.names.len()));
    groups
}

fn retries(items: &[Item]) -> Vec<RetryGroup> {
    let mut groups: BTreeMap<(&str, FixKind, RetryActor), RetryGroup> = BTreeMap::new();
    for item in items {
        let (Some(Loss { class, .. }), Some(Retry { fix, change, actor })) = (&item.loss, &item.retry) else {
            continue;
        };
        let group = groups.entry((class, *fix, *actor)).or_insert_with(|| RetryGroup {
            class: class.clone(),
            fix: *fix,
            change: change.clone(),
            differ: false,
            actor: *actor,
            names: Vec::new(),
        });
        group.differ |= group.change != *change;
        group.names.push(item.name.clone());
    }
    let mut groups: Vec<RetryGroup> = groups.into_values().collect();
    groups.sort_by_key(|group| Reverse(group.names.len()));
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(name: &str, stage: Option<CoverageStage>, fix: FixKind) -> Item {
        let loss = stage.map(|stage| Loss { stage, class: stage.to_string(), reason: "why".to_owned() });
        Item { name: name.to_owned(), loss, retry: Some(Retry { fix, change: "so".to_owned(), actor: actor(fix) }) }
    }

    #[test]
    fn whoever_is_lost_at_a_stage_reached_all_before_it() {
        let items = [
            item("a", None, FixKind::None),
            item("b", Some(CoverageStage::Served), FixKind::Build),
            item("c", Some(CoverageStage::Served), FixKind::Retry),
            item("d", Some(CoverageStage::Command), FixKind::DatasetEdit),
        ];
        let found = coverage("things", &items);
        let reached: Vec<u64> = found.steps.iter().map(|step| step.reached).collect();
        assert_eq!(reached, [4, 3, 3, 1, 1, 1, 1]);
        let lost: Vec<&str> =
            found.steps.iter().flat_map(|step| &step.lost).flat_map(|loss| &loss.names).map(String::as_str).collect();
        assert_eq!(lost, ["d", "b", "c"], "each is lost once");
        assert_eq!(found.retries.len(), 3, "what came through is not run again");
        assert_eq!(found.retries.iter().filter(|group| group.is_transient()).count(), 1);
        assert_eq!(found.reached(CoverageStage::Decided), 1);
    }

    #[test]
    fn nothing_has_a_funnel_of_nothing() {
        let found = coverage("records", &[]);
        assert!(found.steps.iter().all(|step| step.reached == 0 && step.lost.is_empty()));
        assert_eq!(found.steps.len(), CoverageStage::ALL.len());
        assert!(found.retries.is_empty());
    }
}
