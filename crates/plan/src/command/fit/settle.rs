//! One option given several times: the last one counts, as in `argparse`.

use isobench_schema::deviation::DeviationKind;

use super::repair::subject;
use super::{Fitter, deviation};
use crate::command::GivenOption;
use crate::command::options::{Parsed, Refusal, Refused};
use crate::knowledge::translations::Side;

/// Returns the name under which a switch and the option that switches it off are one.
pub(super) fn key(name: &str) -> String {
    match name.strip_prefix("--no-") {
        Some(bare) => format!("--{bare}"),
        None => name.to_owned(),
    }
}

impl<'k> Fitter<'k, '_> {
    /// Keeps the last of each option of one command's arguments.
    pub(super) fn settle_parsed(&mut self, side: Side, parsed: &mut Parsed<'k>) {
        parsed.given = self.settle(side, std::mem::take(&mut parsed.given));
        let mut kept: Vec<Refused<'k>> = Vec::new();
        // What the program doesn't know may be the server's, which takes the last one too.
        for refused in std::mem::take(&mut parsed.refused).into_iter().rev() {
            let name = self.engine_name(&refused.option.name);
            let later = kept.iter().find(|later| {
                refused.why == Refusal::Unknown
                    && later.why == Refusal::Unknown
                    && self.engine_name(&later.option.name).is_some_and(|later| Some(later) == name)
            });
            match later.map(|later| later.option.clone()) {
                Some(later) => self.outdo(side, refused.option, &later),
                None => kept.push(refused),
            }
        }
        kept.reverse();
        parsed.refused = kept;
    }

    /// Keeps the last of each of the server's options, whichever command it comes from.
    pub(super) fn settle_server(&mut self) {
        let options = std::mem::take(&mut self.fitted.server);
        self.fitted.server = self.settle(Side::Server, options);
    }

    fn settle(&mut self, side: Side, options: Vec<GivenOption<'k>>) -> Vec<GivenOption<'k>> {
        let mut kept: Vec<GivenOption<'k>> = Vec::new();
        for option in options.into_iter().rev() {
            match kept.iter().find(|later| key(&later.name) == key(&option.name)).cloned() {
                Some(later) => self.outdo(side, option, &later),
                None => kept.push(option),
            }
        }
        kept.reverse();
        kept
    }

    /// Returns the key of an option that the server knows.
    fn engine_name(&self, name: &str) -> Option<String> {
        let spec = self.server.as_ref()?.get(name)?;
        spec.names.first().map(|main| key(main))
    }

    /// Lists an option as superseded by a later one.
    fn outdo(&mut self, side: Side, option: GivenOption<'k>, later: &GivenOption<'k>) {
        if option.written.is_empty() {
            return;
        }
        let later = if later.written.is_empty() { &later.name } else { &later.written };
        let asked = (&*format!("`{}`", option.written), &*format!("`{later}`"));
        let reason = "it is given twice, and the parser takes the last one";
        self.fitted.repairs.push(deviation(
            DeviationKind::OptionSuperseded,
            &subject(side, &option.name),
            asked,
            reason,
        ));
        self.fitted.superseded.push(option);
    }
}
