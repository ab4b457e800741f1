//! Which tasks differ, with the error held over all tasks of one kind of contrast.

use std::collections::BTreeMap;

use isobench_schema::ids::{ArmId, TaskId};
use isobench_schema::plan::Design;
use isobench_schema::suite::{Called, Claims, TaskTest};
use isobench_schema::verdict::{Contrast, LookDecision, LookResult};

use super::{Kind, LEVEL, Row, Tasks, estimate};
use crate::stats::sequential::{bounded_p, error_family};
use crate::stats::{benjamini_hochberg, holm};

/// A test before it is adjusted over tasks.
struct Raw<'a> {
    task: &'a TaskId,
    estimate: f64,
    p: f64,
    in_task: f64,
}

/// Returns the claims of each kind of contrast that some task has numbers of.
pub(super) fn of(tasks: &Tasks<'_>) -> Vec<Claims> {
    let mut families: BTreeMap<Kind, Vec<Raw<'_>>> = BTreeMap::new();
    for row in &tasks.rows {
        for (kind, raw) in in_task(*row) {
            families.entry(kind).or_default().push(raw);
        }
    }
    families.into_iter().filter_map(|(kind, raw)| claims(kind, &raw)).collect()
}

/// Returns the tests of one task. What must be shown first is shown first: that the human commit is faster, then what an
/// agent is to the baseline, then what it is to the human commit; several agents by Holm's method at each step.
fn in_task(row: Row<'_>) -> Vec<(Kind, Raw<'_>)> {
    let p = |contrast: &Contrast| overall_p(&row.planned.design, contrast);
    let human = row.contrast(&ArmId::Human, &ArmId::Baseline);
    // Where the human commit isn't known to be faster nothing may be claimed of agents; without one there is no such step.
    let gate = human.map_or(0.0, |human| match estimate(human).zip(p(human)) {
        Some((estimate, p)) if estimate > 0.0 => p,
        Some(_) | None => 1.0,
    });
    let mut found: Vec<(Kind, Raw<'_>)> = Vec::new();
    let mut shown: BTreeMap<&ArmId, f64> = BTreeMap::new();
    for against in [ArmId::Baseline, ArmId::Human] {
        let step: Vec<(&ArmId, f64, f64)> = row
            .judged
            .contrasts
            .iter()
            .filter(|contrast| contrast.against == against)
            .filter_map(|contrast| Some((&contrast.of, estimate(contrast)?, p(contrast)?)))
            .collect();
        let agents: Vec<&(&ArmId, f64, f64)> = step.iter().filter(|(of, _, _)| matches!(of, ArmId::Agent(_))).collect();
        let adjusted = holm(&agents.iter().map(|(_, _, p)| *p).collect::<Vec<_>>()).unwrap_or_default();
        let mut next: BTreeMap<&ArmId, f64> = BTreeMap::new();
        for ((of, _, _), adjusted) in agents.iter().zip(adjusted) {
            let before = if against == ArmId::Baseline { gate } else { shown.get(of).copied().unwrap_or(1.0) };
            next.insert(of, adjusted.max(before));
        }
        for (of, estimate, p) in &step {
            let in_task = next.get(of).copied().unwrap_or(*p);
            let kind = Kind { against: against.clone(), of: (*of).clone() };
            found.push((kind, Raw { task: &row.judged.id, estimate: *estimate, p: *p, in_task }));
        }
        shown = next;
    }
    found
}

fn claims(kind: Kind, raw: &[Raw<'_>]) -> Option<Claims> {
    let p: Vec<f64> = raw.iter().map(|raw| raw.p).collect();
    let (holm, rate) = (holm(&p)?, benjamini_hochberg(&p)?);
    let test = |((raw, holm), benjamini_hochberg): ((&Raw<'_>, f64), f64)| TaskTest {
        task: raw.task.clone(),
        estimate: raw.estimate,
        p: raw.p,
        in_task: raw.in_task,
        holm,
        benjamini_hochberg,
    };
    let tests: Vec<TaskTest> = raw.iter().zip(holm).zip(rate).map(test).collect();
    Some(Claims {
        of: kind.of,
        against: kind.against,
        holm: called(&tests, |test| test.holm),
        benjamini_hochberg: called(&tests, |test| test.benjamini_hochberg),
        tests,
    })
}

fn called(tests: &[TaskTest], p: impl Fn(&TaskTest) -> f64) -> Called {
    let mut called = Called::default();
    for test in tests.iter().filter(|test| p(test) <= LEVEL) {
        if test.estimate > 0.0 {
            called.faster += 1;
        } else {
            called.slower += 1;
        }
    }
    called
}

/// Returns the p of a contrast over its looks up to the one that it was judged at, or `None` if no look had numbers. Where
/// blocks are missing, so that the levels were calculated for what there is, it is the bound of Bonferroni's inequality.
fn overall_p(design: &Design, contrast: &Contrast) -> Option<f64> {
    let deciding = contrast.looks.iter().position(|look| look.decision.verdict().is_some());
    let taken = deciding.map_or(contrast.looks.as_slice(), |last| contrast.looks.get(..=last).unwrap_or_default());
    if taken.last()?.decision == LookDecision::Drift {
        return Some(1.0);
    }
    let mut looks: Vec<(&LookResult, f64)> = Vec::new();
    for (look, p) in taken.iter().filter_map(|look| Some((look, look.p?))) {
        // A look without a new difference repeats the one before it.
        if looks.last().is_none_or(|(before, _)| before.blocks < look.blocks) {
            looks.push((look, p));
        }
    }
    let (_, last) = looks.last()?;
    if design.looks.len() == 1 {
        return Some(*last);
    }
    let planned: Vec<u32> = design.looks.iter().map(|look| look.blocks).collect();
    let is_whole = looks.len() == taken.len() && looks.iter().all(|(look, _)| look.blocks == look.planned);
    let family = if is_whole { error_family(design.spending, &planned) } else { None };
    let p = if let Some(family) = family {
        family.overall_p(&looks.iter().map(|(_, p)| *p).collect::<Vec<_>>())
    } else {
        let most = f64::from(design.blocks().max(1));
        let part = |look: &LookResult| f64::from(look.planned) / most;
        bounded_p(design.spending, &looks.iter().map(|(look, p)| (part(look), *p)).collect::<Vec<_>>())
    };
    // What the looks' own levels say is what the p says at 5 %, to the last digit.
    let is_crossed = looks.iter().any(|(look, p)| *p < look.level);
    Some(if is_crossed { p.min(LEVEL) } else { p.max(LEVEL.next_up()) })
}
