//! The view of a suite: sentences, tables and forests with every number formatted.

use isobench_schema::ids::ArmId;
use isobench_schema::suite::{
    ArmRates, Claims, Headline, MeanOverTasks, NullScore, OutcomeCounts, RankMeasure, RankPair, RankRow, RankTable,
    Rate, RuleScore, SuccessRate, Suite,
};
use isobench_schema::verdict::{Contrast, Judgement, Standing, TaskJudgement, Verdict};

use crate::explain::{headline_sentence, interval_text};
use crate::number::{self, counted};
use crate::svg::forest::{Forest, ForestMean, ForestRow};
use crate::words::VerdictWord;

/// What the tasks say together.
#[derive(Debug, Clone, PartialEq)]
pub struct SuiteView {
    /// How many tasks there are, and a sentence for each headline.
    pub lead: Vec<String>,
    /// The tables.
    pub tables: Vec<TableView>,
    /// The forests.
    pub forests: Vec<Forest>,
}

/// A table of a suite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableView {
    /// What it shows.
    pub title: String,
    /// How to read it, in a sentence or two.
    pub about: String,
    /// The names of its columns; those that hold numbers are set to the right.
    pub columns: Vec<ColumnView>,
    /// The cells.
    pub rows: Vec<Vec<String>>,
    /// Whether it has a row for each task, and belongs to the pages only.
    pub is_long: bool,
}

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnView {
    /// Its name.
    pub title: String,
    /// Whether it holds numbers.
    pub is_number: bool,
}

/// Tasks that a cell names.
const NAMED: usize = 40;

/// Returns the view of a judgement's suite, if it has one.
pub(super) fn view(judgement: &Judgement) -> Option<SuiteView> {
    let suite = judgement.suite.as_ref()?;
    let tables = [headlines(suite), rates(suite), outcomes(suite), claims(suite), differing(suite), rules(suite)];
    let tables = tables.into_iter().chain(suite.ranks.iter().flat_map(ranks)).chain([side_by_side(suite)]);
    Some(SuiteView {
        lead: lead(suite).into_iter().chain(by_word(judgement)).collect(),
        tables: tables.filter(|table| !table.rows.is_empty()).collect(),
        forests: suite.headlines.iter().map(|headline| forest(judgement, headline)).collect(),
    })
}

fn words(titles: &[&str]) -> Vec<ColumnView> {
    titles.iter().map(|title| ColumnView { title: (*title).to_owned(), is_number: false }).collect()
}

fn numbers<T: AsRef<str>>(titles: &[T]) -> Vec<ColumnView> {
    titles.iter().map(|title| ColumnView { title: title.as_ref().to_owned(), is_number: true }).collect()
}

fn dash() -> String {
    "–".to_owned()
}

fn pair(of: &ArmId, against: &ArmId) -> String {
    format!("{of} vs {against}")
}

fn speedup(log_ratio: f64) -> String {
    let value = log_ratio.exp();
    number::speedup(value, number::speedup_decimals(&[value]))
}

fn share(part: f64) -> String {
    format!("{:.1} %", 100.0 * part)
}

/// Returns a rate with its interval, such as `38 of 100, 29.1 to 47.8 %`.
fn rate(rate: &Rate) -> String {
    let interval = rate.low.zip(rate.high);
    let interval =
        interval.map_or_else(String::new, |(low, high)| format!(", {:.1} to {:.1} %", 100.0 * low, 100.0 * high));
    format!("{} of {}{interval}", number::grouped(rate.successes), number::grouped(rate.trials))
}

fn lead(suite: &Suite) -> Vec<String> {
    let tasks = suite.tasks;
    let parts = [
        (tasks.rankable, Standing::Rankable),
        (tasks.human_gain_unproven, Standing::HumanGainUnproven),
        (tasks.nothing_to_beat, Standing::NothingToBeat),
        (tasks.not_measured, Standing::NotMeasured),
        (tasks.not_asked, Standing::NotAsked),
    ];
    let parts: Vec<String> = parts
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, standing)| format!("{} {standing}", number::grouped(*number)))
        .collect();
    let left_out = match tasks.left_out {
        0 => String::new(),
        number => format!("; {} asked for besides could not be run", number::grouped(number)),
    };
    let mut lead = vec![format!("{}: {}{left_out}.", counted(tasks.planned, "task"), parts.join(", "))];
    lead.extend(suite.headlines.iter().map(headline_sentence));
    if let Some(sentinels) = &suite.sentinels {
        lead.push(format!(
            "The baseline under another name (sentinels) was found to differ from itself in {} of {} comparisons; 5 % are \
             expected.",
            number::grouped(sentinels.successes),
            number::grouped(sentinels.trials)
        ));
    }
    lead
}

fn headlines(suite: &Suite) -> TableView {
    let with_failures = |mean: &MeanOverTasks| {
        let interval = interval_text(mean).map_or_else(String::new, |interval| format!(", {interval}"));
        format!("{}{interval}", speedup(mean.estimate))
    };
    let has_failures = suite.headlines.iter().any(|headline| headline.with_failures.is_some());
    let row = |headline: &Headline| {
        let mean = &headline.measured;
        let mut row = vec![
            pair(&headline.of, &headline.against),
            number::grouped(mean.tasks),
            speedup(mean.estimate),
            interval_text(mean).unwrap_or_else(dash),
        ];
        if has_failures {
            row.push(headline.with_failures.as_ref().map_or_else(dash, with_failures));
        }
        row.extend([number::grouped(headline.proven_tasks), speedup(headline.proven)]);
        row
    };
    let mut titles = vec!["tasks", "speed-up", "interval"];
    titles.extend(has_failures.then_some("with failures"));
    titles.extend(["proven in", "proven gain"]);
    TableView {
        title: "Mean speed-ups".to_owned(),
        about: "Geometric means over tasks with 95 % intervals over tasks. With failures, a task in which the agent failed by \
                itself or gave no patch counts as if the baseline had been left as it was. The proven gain is the mean of the \
                lower ends of the tasks' intervals, no gain where that is below 1x."
            .to_owned(),
        columns: words(&["contrast"]).into_iter().chain(numbers(&titles)).collect(),
        rows: suite.headlines.iter().map(row).collect(),
        is_long: false,
    }
}

fn each_rate(suite: &Suite) -> impl Iterator<Item = (&ArmRates, &SuccessRate)> {
    suite.rates.iter().flat_map(|arm| arm.rates.iter().map(move |rate| (arm, rate)))
}

fn rates(suite: &Suite) -> TableView {
    let row = |(arm, found): (&ArmRates, &SuccessRate)| {
        let percent = |rate: &Rate| match rate.trials {
            0 => dash(),
            trials => share(f64::from(rate.successes) / f64::from(trials)),
        };
        let (strict, excluded) = (&found.strict, &found.infrastructure_excluded);
        vec![
            arm.arm.to_string(),
            found.rule.to_string(),
            percent(strict),
            rate(strict),
            percent(excluded),
            rate(excluded),
        ]
    };
    let titles = ["strict", "of all tasks", "excluding", "of tasks not lost"];
    TableView {
        title: "Success".to_owned(),
        about: "Rates with 95 % Wilson intervals. Strict: of every task, whatever kept it from a result. Excluding \
                infrastructure: of the tasks that neither the machine nor another arm took away. For agents, tasks with \
                nothing to beat or an unproven human gain are left out of both and counted below."
            .to_owned(),
        columns: words(&["arm", "success"]).into_iter().chain(numbers(&titles)).collect(),
        rows: each_rate(suite).map(row).collect(),
        is_long: false,
    }
}

/// Which count a column shows.
type Count = fn(&OutcomeCounts) -> u32;

fn outcomes(suite: &Suite) -> TableView {
    let all: [(&str, Count); 9] = [
        ("yes", |counts| counts.succeeded),
        ("no", |counts| counts.not_succeeded),
        ("undecided", |counts| counts.undecided),
        ("failed", |counts| counts.failed),
        ("no patch", |counts| counts.no_patch),
        ("infrastructure", |counts| counts.infrastructure),
        ("no such arm", |counts| counts.without_arm),
        ("nothing to beat", |counts| counts.nothing_to_beat),
        ("unproven", |counts| counts.human_gain_unproven),
    ];
    let is_seen = |count: Count| each_rate(suite).any(|(_, rate)| count(&rate.counts) > 0);
    let seen: Vec<_> = all.into_iter().filter(|(_, count)| is_seen(*count)).collect();
    let row = |(arm, found): (&ArmRates, &SuccessRate)| {
        let counts = seen.iter().map(|(_, count)| number::grouped(count(&found.counts)));
        [arm.arm.to_string(), found.rule.to_string()].into_iter().chain(counts).collect()
    };
    let titles: Vec<&str> = seen.iter().map(|(title, _)| *title).collect();
    TableView {
        title: "What became of the tasks".to_owned(),
        about: String::new(),
        columns: words(&["arm", "success"]).into_iter().chain(numbers(&titles)).collect(),
        rows: each_rate(suite).map(row).collect(),
        is_long: false,
    }
}

fn claims(suite: &Suite) -> TableView {
    let row = |claims: &Claims| {
        let [holm, rate] = [claims.holm, claims.benjamini_hochberg];
        let counts = [number::grouped(u32::try_from(claims.tests.len()).unwrap_or(u32::MAX))];
        let called = [holm.faster, holm.slower, rate.faster, rate.slower].map(number::grouped);
        [pair(&claims.of, &claims.against)].into_iter().chain(counts).chain(called).collect()
    };
    let titles = ["tests", "faster, Holm", "slower, Holm", "faster, rate", "slower, rate"];
    TableView {
        title: "How many tasks differ".to_owned(),
        about: "All tasks held together: by Holm's method the chance of a single false one is at most 5 %, by Benjamini's and \
                Hochberg's the expected rate of false ones. Each p is over all looks. The margin plays no part here."
            .to_owned(),
        columns: words(&["contrast"]).into_iter().chain(numbers(&titles)).collect(),
        rows: suite.claims.iter().map(row).collect(),
        is_long: false,
    }
}

/// Returns the tasks that differ by Holm's method, by name.
fn differing(suite: &Suite) -> TableView {
    let row = |claims: &Claims| {
        let names = |wanted: fn(f64) -> bool| -> String {
            let called = claims.tests.iter().filter(|test| test.holm <= 0.05 && wanted(test.estimate));
            let names: Vec<String> = called.map(|test| test.task.to_string()).collect();
            if names.is_empty() { dash() } else { crate::funnel::some_of(&names, NAMED) }
        };
        vec![pair(&claims.of, &claims.against), names(|estimate| estimate > 0.0), names(|estimate| estimate <= 0.0)]
    };
    TableView {
        title: "Which tasks differ by Holm's method".to_owned(),
        about: "The CSV has the p of every task.".to_owned(),
        columns: words(&["contrast", "faster", "slower"]),
        rows: suite.claims.iter().map(row).collect(),
        is_long: true,
    }
}

fn rules(suite: &Suite) -> TableView {
    let agents: Vec<&ArmId> =
        suite.rates.iter().map(|rates| &rates.arm).filter(|arm| matches!(arm, ArmId::Agent(_))).collect();
    let score = |rule: &RuleScore, arm: &ArmId| {
        let Some(found) = rule.agents.iter().find(|score| score.arm == *arm) else { return dash() };
        let unconfirmed = match found.unconfirmed {
            Some(number) if number > 0 => format!(" ({number} unconfirmed)"),
            Some(_) | None => String::new(),
        };
        format!("{} of {}{unconfirmed}", number::grouped(found.rate.successes), number::grouped(found.rate.trials))
    };
    let null = |score: &NullScore| format!("{} of {}", share(score.expected), counted(score.trials, "task"));
    let row = |rule: &RuleScore| {
        let mut row = vec![rule.rule.to_string()];
        row.push(rule.null_agent.as_ref().map_or_else(dash, null));
        row.push(rule.null_agent.map_or_else(dash, |score| score.basis.to_string()));
        row.extend(agents.iter().map(|arm| score(rule, arm)));
        row
    };
    let names: Vec<String> = agents.iter().map(ToString::to_string).collect();
    TableView {
        title: "Other rules, and an empty patch".to_owned(),
        about: "What each rule calls a success. `threshold` and `over-baseline` are rules on one run, here each task's first \
                block: at most so much slower than the human commit, and more than so much faster than the baseline. \
                Unconfirmed are successes that the verdict of all blocks doesn't share. An empty patch changes nothing: what \
                it scores is what a rule gives away, from the baseline's own launches."
            .to_owned(),
        columns: [words(&["rule"]), numbers(&["an empty patch"]), words(&["taken from"]), numbers(&names)].concat(),
        rows: suite.rules.iter().map(row).collect(),
        is_long: false,
    }
}

/// Returns the table of ranks and that of its pairs.
fn ranks(table: &RankTable) -> [TableView; 2] {
    let value = |value: f64| match table.by {
        RankMeasure::SpeedUp => speedup(value),
        RankMeasure::BetterThanBaseline | RankMeasure::AtLeastHuman => share(value),
    };
    let letters = |arm: &ArmId| -> String {
        let of = table.groups.iter().zip('a'..='z').filter(|(group, _)| group.contains(arm));
        of.map(|(_, letter)| letter).collect()
    };
    let row = |row: &RankRow| {
        let rank = if row.best == row.worst { row.best.to_string() } else { format!("{} to {}", row.best, row.worst) };
        vec![rank, row.arm.to_string(), value(row.value), number::grouped(row.tasks), letters(&row.arm)]
    };
    let of_pair = |pair: &RankPair| {
        let is_apart = pair.holm.is_some_and(|p| p <= 0.05);
        let difference = match table.by {
            RankMeasure::SpeedUp => pair.difference.map(speedup),
            RankMeasure::BetterThanBaseline | RankMeasure::AtLeastHuman => {
                pair.difference.map(|difference| format!("{:+.1} points", 100.0 * difference).replace('-', "−"))
            }
        };
        vec![
            self::pair(&pair.of, &pair.against),
            number::grouped(pair.tasks),
            difference.unwrap_or_else(dash),
            pair.p.map_or_else(dash, number::p_value),
            pair.holm.map_or_else(dash, number::p_value),
            if is_apart { "told apart" } else { "can't be told apart" }.to_owned(),
        ]
    };
    let by = match table.by {
        RankMeasure::SpeedUp => "speed-up over the baseline",
        RankMeasure::BetterThanBaseline => "success: better than the baseline",
        RankMeasure::AtLeastHuman => "success: at least as good as the human commit",
    };
    let rows = TableView {
        title: format!("Ranks by {by}"),
        about: "Agents that share a letter can't be told apart. A rank is a range: how many agents are shown to be better, and \
                how many aren't shown to be worse. Failures count as no gain."
            .to_owned(),
        columns: [words(&["rank", "agent"]), numbers(&["value", "tasks"]), words(&["alike"])].concat(),
        rows: table.rows.iter().map(row).collect(),
        is_long: false,
    };
    let pairs = TableView {
        title: format!("Pairs of agents by {by}"),
        about: "Over the tasks that both have; p by Holm's method over all pairs.".to_owned(),
        columns: [words(&["pair"]), numbers(&["common tasks", "difference", "p", "p by Holm"]), words(&["so they"])]
            .concat(),
        rows: table.pairs.iter().map(of_pair).collect(),
        is_long: true,
    };
    [rows, pairs]
}

fn side_by_side(suite: &Suite) -> TableView {
    let row = |item: &isobench_schema::suite::SideBySide| {
        let difference = item.difference_pct.map(|difference| format!("{difference:+.1} %").replace('-', "−"));
        vec![
            item.task.to_string(),
            item.arm.to_string(),
            difference.unwrap_or_else(dash),
            item.five.to_string(),
            item.two.to_string(),
            VerdictWord::of(item.verdict).to_string(),
        ]
    };
    TableView {
        title: "Classes of single runs beside verdicts".to_owned(),
        about: "Each agent against the human commit: the first block alone by `threshold:5%` and `threshold:2%`, and the \
                verdict of all blocks. The quadrants need a label of what the agent worked on, which a run doesn't have."
            .to_owned(),
        columns: [
            words(&["task", "agent"]),
            numbers(&["first block"]),
            words(&["by 5 %", "by 2 %", "verdict"]),
        ]
        .concat(),
        rows: suite.side_by_side.iter().map(row).collect(),
        is_long: true,
    }
}

fn forest(judgement: &Judgement, headline: &Headline) -> Forest {
    let contrasts = || {
        let own = |task: &'_ TaskJudgement| {
            task.contrasts.iter().position(|c| c.of == headline.of && c.against == headline.against)
        };
        judgement.tasks.iter().filter_map(move |task| Some((task, task.contrasts.get(own(task)?)?)))
    };
    let mut rows: Vec<ForestRow> = contrasts().filter_map(|(task, contrast)| forest_row(task, contrast)).collect();
    rows.sort_by(|one, other| other.estimate.total_cmp(&one.estimate));
    let count = |verdict: &Verdict| contrasts().filter(|(_, contrast)| contrast.verdict == *verdict).count();
    let verdicts = Verdict::ALL.iter().map(|verdict| (VerdictWord::of(*verdict), count(verdict)));
    Forest {
        of: headline.of.to_string(),
        against: headline.against.to_string(),
        rows,
        verdicts: verdicts.filter(|(_, number)| *number > 0).collect(),
        headline: forest_mean(&headline.measured),
        with_failures: headline.with_failures.as_ref().and_then(forest_mean),
    }
}

/// Returns the mark of a contrast that counts by a person's word.
fn mark(task: &TaskJudgement, contrast: &Contrast) -> &'static str {
    let arms = [&contrast.of, &contrast.against];
    if task.confirmations.iter().any(|confirmation| arms.contains(&&confirmation.arm)) { " ‡" } else { "" }
}

/// Returns the sentence that names the tasks which count by a person's word, if there are any.
fn by_word(judgement: &Judgement) -> Option<String> {
    let tasks: Vec<&TaskJudgement> = judgement.tasks.iter().filter(|task| !task.confirmations.is_empty()).collect();
    let shown = tasks.iter().take(NAMED).map(|task| task.id.to_string()).collect::<Vec<_>>().join(", ");
    let more = match tasks.len().saturating_sub(NAMED) {
        0 => String::new(),
        number => format!(" and {number} more"),
    };
    (!tasks.is_empty()).then(|| {
        format!(
            "Measurements of {} that broke a check count by a person's word (‡): {shown}{more}.",
            counted(u32::try_from(tasks.len()).unwrap_or(u32::MAX), "task")
        )
    })
}

fn forest_row(task: &TaskJudgement, contrast: &Contrast) -> Option<ForestRow> {
    let estimate = contrast.estimate.filter(|estimate| estimate.is_finite() && contrast.p.is_some())?;
    let interval = contrast.low.zip(contrast.high).filter(|(low, high)| low.is_finite() && high.is_finite());
    let shown: Vec<f64> = std::iter::once(estimate)
        .chain(interval.into_iter().flat_map(|(low, high)| [low, high]))
        .map(f64::exp)
        .collect();
    let decimals = number::speedup_decimals(&shown);
    let ends = interval.map_or_else(String::new, |(low, high)| {
        format!(", {} to {}", number::speedup(low.exp(), decimals), number::speedup(high.exp(), decimals))
    });
    Some(ForestRow {
        task: task.id.to_string(),
        verdict: VerdictWord::of(contrast.verdict),
        estimate,
        interval,
        margin: task.margin.max(0.0).ln_1p(),
        text: format!("{}{ends}{}", number::speedup(estimate.exp(), decimals), mark(task, contrast)),
    })
}

fn forest_mean(mean: &MeanOverTasks) -> Option<ForestMean> {
    let interval = mean.low.zip(mean.high).filter(|(low, high)| low.is_finite() && high.is_finite());
    let ends = interval_text(mean).map_or_else(String::new, |ends| format!(", {ends}"));
    mean.estimate.is_finite().then(|| ForestMean {
        tasks: counted(mean.tasks, "task"),
        estimate: mean.estimate,
        interval,
        text: format!("{}{ends}", speedup(mean.estimate)),
    })
}
