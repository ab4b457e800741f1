//! `isobench explain`: what a lint rule is about.

use isobench_plan::lint::registry::{self, Repairs, Rule};
use isobench_plan::nearest::nearest;
use isobench_report::lint::RuleText;
use isobench_report::{json, terminal};

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
    let rule = text(registry::rule(id).ok_or_else(|| unknown(id))?);
    if context.json {
        context.print_json(&json::rule(&rule))?;
    } else {
        context.terminal.data(&terminal::rule(&rule, style));
    }
    Ok(Exit::Success)
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

fn unknown(id: &str) -> CommandError {
    let hint = match nearest(id, registry::rules().iter().map(|rule| rule.id.as_str())) {
        Some(near) => format!("did you mean `{near}`? `isobench explain` lists all rules"),
        None => "`isobench explain` lists all rules".to_owned(),
    };
    CommandError::new(Exit::Usage, format!("there is no rule `{id}`")).hint(hint)
}
