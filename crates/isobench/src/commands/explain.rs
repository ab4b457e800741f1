//! `isobench explain`: what a lint rule, the reason of an exclusion, the signature or class of a failure, or another word of
//! a report is about.

mod words;

use isobench_analysis::classify::{self, ClassRow, Seen, Signature};
use isobench_plan::lint::registry::{self, Repairs, Rule};
use isobench_plan::nearest::nearest;
use isobench_report::lint::RuleText;
use isobench_report::{json, terminal};
use isobench_schema::plan::ExclusionReason;

use super::Context;
use crate::args::ExplainArgs;
use crate::exit::{CommandError, Exit};

/// Runs the command.
pub(crate) fn run(args: &ExplainArgs, context: Context) -> Result<Exit, CommandError> {
    let style = super::report::style(context);
    let Some(id) = &args.rule else {
        let rules: Vec<RuleText> = registry::rules().iter().map(text).collect();
        if context.json {
            context.print_json(&rules.iter().map(json::rule).collect::<Vec<_>>())?;
        } else {
            context.terminal.data(&terminal::rules(&rules, style));
        }
        return Ok(Exit::Success);
    };
    if let Some(reason) = ExclusionReason::parse(id) {
        let means = reason_means(reason);
        if context.json {
            context.print_json(&serde_json::json!({ "id": reason, "means": means }))?;
        } else {
            context.terminal.data(&terminal::meaning(reason.as_str(), means, style));
        }
        return Ok(Exit::Success);
    }
    if let Some(signature) = classify::signatures().iter().find(|row| row.id.eq_ignore_ascii_case(id)) {
        explain_signature(signature, context)?;
        return Ok(Exit::Success);
    }
    if let Some(class) = classify::classes().iter().find(|class| class.id == *id) {
        explain_class(class, context)?;
        return Ok(Exit::Success);
    }
    let words = words::of(id);
    if !words.is_empty() {
        explain_words(id, &words, context)?;
        return Ok(Exit::Success);
    }
    let rule = text(registry::rule(id).ok_or_else(|| unknown(id))?);
    if context.json {
        context.print_json(&json::rule(&rule))?;
    } else {
        context.terminal.data(&terminal::rule(&rule, style));
    }
    Ok(Exit::Success)
}

fn explain_signature(row: &Signature, context: Context) -> Result<(), CommandError> {
    let seen = match row.seen {
        Seen::Real => "in a true log",
        Seen::Template => "only in logs composed after reports and sources",
    };
    let (cause, advice) = (classify::without_places(&row.cause), classify::without_places(&row.fix.advice));
    let (stage, engines, recipes) = (row.stage.as_str(), row.engines.join(", "), row.fix.recipes.join(", "));
    if context.json {
        return context.print_json(&serde_json::json!({
            "id": row.id, "class": row.class, "stage": stage, "engines": row.engines, "versions": row.versions,
            "cause": cause, "transient": row.transient,
            "fix": { "kind": row.fix.kind, "recipes": row.fix.recipes, "advice": advice },
            "seen": seen, "source": row.source,
        }));
    }
    let parts = [
        ("cause", cause.as_str()),
        ("class", &row.class),
        ("stage", stage),
        ("of", &engines),
        ("versions", &row.versions),
        ("fix", &advice),
        ("recipes", &recipes),
        ("again", if row.transient { "the same again may well succeed" } else { "" }),
        ("seen", seen),
        ("source", &row.source),
    ];
    context.terminal.data(&terminal::meanings(&row.id, &parts, super::report::style(context)));
    Ok(())
}

fn explain_class(class: &ClassRow, context: Context) -> Result<(), CommandError> {
    let rows = classify::signatures().iter().filter(|row| row.class == class.id);
    let ids: Vec<&str> = rows.map(|row| row.id.as_str()).collect();
    if context.json {
        return context.print_json(&serde_json::json!({ "id": class.id, "means": class.meaning, "signatures": ids }));
    }
    let ids = ids.join(", ");
    let parts = [("means", class.meaning.as_str()), ("shown by", &ids)];
    context.terminal.data(&terminal::meanings(&class.id, &parts, super::report::style(context)));
    Ok(())
}

/// Prints what a word of reports means, in each of its senses.
fn explain_words(id: &str, words: &[words::Word], context: Context) -> Result<(), CommandError> {
    if context.json {
        let senses: Vec<_> = words
            .iter()
            .map(|word| serde_json::json!({ "is": word.is, "means": word.means, "counts": word.counts }))
            .collect();
        return context.print_json(&serde_json::json!({ "id": id, "senses": senses }));
    }
    let parts: Vec<(&str, &str)> =
        words.iter().flat_map(|word| [("is", word.is), ("means", word.means), ("counts", word.counts)]).collect();
    context.terminal.data(&terminal::meanings(id, &parts, super::report::style(context)));
    Ok(())
}

fn text(rule: &Rule) -> RuleText {
    let repairs = match rule.repairs {
        Repairs::Always => "isobench mends it by itself, and says so as a deviation.",
        Repairs::Sometimes => {
            "isobench mends it where that doesn't change what is measured, and says so as a deviation."
        }
        Repairs::Never => "isobench doesn't mend it: only an edit of the dataset or another plan does.",
    };
    RuleText {
        id: rule.id.clone(),
        severity: rule.severity,
        title: rule.title.clone(),
        meaning: rule.meaning.clone(),
        matters: rule.matters.clone(),
        example: rule.example.clone(),
        fix: rule.fix.clone(),
        repairs: repairs.to_owned(),
        source: rule.source.clone(),
    }
}

/// Returns what it means that a plan excludes a task or an arm for this reason, and what to do about it.
fn reason_means(reason: ExclusionReason) -> &'static str {
    match reason {
        ExclusionReason::NotChosen => {
            "The task or arm could be planned, but the command didn't ask for it: `--task`, `--arm`, `--kind` or `--limit` \
             leaves it out. Plan without that option to have it."
        }
        ExclusionReason::RevisionNotFound => {
            "The repository has no commit of that name, so that there is nothing to measure. Check the spelling; a clone may \
             have to be fetched, and a shallow one has to be completed with `git fetch --unshallow`."
        }
        ExclusionReason::RepositoryUnavailable => {
            "Git can't read the repository: the path holds none, the address is refused, or the network doesn't reach it. The \
             message carries what git said. Name another address, or an absolute path to a clone."
        }
        ExclusionReason::MachineTooSmall => {
            "A launch needs more devices, larger ones, more memory or more disk than the plan is made for. Plan for others with \
             `--device` and `--devices`, run on a larger machine, or let a smaller model stand in with `--proxy`, which is a \
             deviation."
        }
        ExclusionReason::ToolMissing => {
            "A program from which the task's environment is made, such as `git` or `python3`, isn't on this machine. \
             `isobench doctor` lists what is there and how to get the rest."
        }
        ExclusionReason::InputMissing => {
            "A file, a folder or a repository of the hub that the task names, such as the model of `server.model`, can't be had: \
             it isn't there, access wasn't granted, or the hub can't be asked. The message has the class; \
             docs/guides/inputs.md says what to do. Or name another with `--set`, which is a deviation."
        }
        ExclusionReason::Contradiction => {
            "Two things that the task asks for can't both hold. The message names them; one has to be edited in the dataset."
        }
        ExclusionReason::CannotRun => {
            "The task of a commit can't be measured as it stands: its command, its model or an arm's environment is at fault. \
             `isobench plan DATASET --explain COMMIT` tells the whole story, and `isobench lint DATASET` lists the faults with \
             their fixes."
        }
        ExclusionReason::ClientLacks => {
            "The task can be measured, but isobench's own client lacks something for it: it draws prompts from a dataset of \
             texts, and counts tokens where the server doesn't send their ids, only with the model's tokenizer and the \
             dataset's file. Name a folder of models with `--models DIR`, or let the hub be asked with `--hub`; \
             docs/guides/inputs.md says where they are looked for."
        }
        ExclusionReason::IsolationMissing => {
            "Agent patches are strangers' programs, and this machine's launches aren't isolated. Read `docs/security.md`, and \
             give `--allow-unisolated` where the machine holds nothing that they may not touch."
        }
    }
}

fn unknown(id: &str) -> CommandError {
    let rules = registry::rules().iter().map(|rule| rule.id.as_str());
    let reasons = ExclusionReason::ALL.iter().map(|reason| reason.as_str());
    let signatures = classify::signatures().iter().map(|row| row.id.as_str());
    let classes = classify::classes().iter().map(|class| class.id.as_str());
    let words = words::all().map(|(id, _)| id);
    let hint = match nearest(id, rules.chain(reasons).chain(signatures).chain(classes).chain(words)) {
        Some(near) => format!(
            "did you mean `{near}`? `isobench explain` lists all rules, docs/failures.md all signatures and classes"
        ),
        None => "`isobench explain` lists all rules, docs/failures.md all signatures and classes".to_owned(),
    };
    CommandError::new(
        Exit::Usage,
        format!(
            "there is no rule `{id}`, and no reason, signature, class, verdict, standing or deviation of that name"
        ),
    )
    .hint(hint)
}
