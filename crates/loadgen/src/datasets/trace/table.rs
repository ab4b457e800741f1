//! Traces that are tables with commas: those of `BurstGPT` and of Azure's services.

use super::moment;
use super::{Kind, Parsed, Traced};

/// Which columns hold what.
#[derive(Debug)]
pub(super) struct Columns {
    kind: Kind,
    time: usize,
    input: usize,
    output: usize,
    /// The column of the model, and the one that is wanted.
    model: Option<(usize, String)>,
}

impl Columns {
    /// Finds the columns by the names at the table's head.
    pub(super) fn of(head: &str, kind: Kind, model: &str) -> Result<Self, String> {
        let names = fields(head);
        let find = |name: &str| {
            let place = names.iter().position(|found| found.trim().eq_ignore_ascii_case(name));
            place.ok_or_else(|| format!("its first line has no column `{name}`"))
        };
        let is_burst = kind == Kind::BurstGpt;
        let [time, input, output] = if is_burst {
            ["Timestamp", "Request tokens", "Response tokens"]
        } else {
            ["TIMESTAMP", "ContextTokens", "GeneratedTokens"]
        };
        let model = if is_burst && model != "any" { Some((find("Model")?, model.to_owned())) } else { None };
        Ok(Self { kind, time: find(time)?, input: find(input)?, output: find(output)?, model })
    }

    /// Reads a row.
    pub(super) fn row(&self, bytes: &[u8]) -> Parsed<Traced> {
        let Ok(line) = std::str::from_utf8(bytes) else { return Parsed::Bad("it is no UTF-8 text".to_owned()) };
        let fields = fields(line);
        let field = |place: usize| fields.get(place).map(|field| field.trim());
        if let Some((place, wanted)) = &self.model {
            match field(*place) {
                None => return Parsed::Bad("it has too few columns".to_owned()),
                Some(model) if model != wanted => return Parsed::LeftOut,
                Some(_) => {}
            }
        }
        let (Some(time), Some(input), Some(output)) = (field(self.time), field(self.input), field(self.output)) else {
            return Parsed::Bad("it has too few columns".to_owned());
        };
        let at_ns = match self.kind {
            Kind::Azure => moment::since_epoch_ns(time),
            Kind::BurstGpt | Kind::Mooncake | Kind::Timed => moment::seconds_ns(time),
        };
        let Some(at_ns) = at_ns else { return Parsed::Bad(format!("`{time}` is no time")) };
        let lengths = |text: &str| text.parse::<u32>().map_err(|_not_whole| format!("`{text}` is no number of tokens"));
        match (lengths(input), lengths(output)) {
            (Ok(input_tokens), Ok(output_tokens)) => {
                Parsed::Row(Traced { at_ns, input_tokens, output_tokens, blocks: Vec::new(), prompt: None })
            }
            (Err(what), _) | (_, Err(what)) => Parsed::Bad(what),
        }
    }
}

/// Splits a line at its commas, but not at those in quotes.
fn fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut is_quoted = false;
    for sign in line.trim_end_matches(['\r', '\n']).trim_start_matches('\u{feff}').chars() {
        match sign {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => fields.push(String::new()),
            _ => {
                if let Some(last) = fields.last_mut() {
                    last.push(sign);
                }
            }
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: Kind, head: &str, row: &str, expected: &str) {
        let found = match Columns::of(head, kind, "GPT-4").unwrap().row(row.as_bytes()) {
            Parsed::Row(row) => format!("{} {} {}", row.at_ns, row.input_tokens, row.output_tokens),
            Parsed::LeftOut => "left out".to_owned(),
            Parsed::Bad(what) => what,
        };
        assert_eq!(found, expected, "{row}");
    }

    #[test]
    fn rows_of_both_tables_are_read() {
        let burst = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type";
        for (row, expected) in [
            ("5,GPT-4,472,18,490,Conversation log", "5000000000 472 18"),
            ("45.5,\"GPT-4\",1087,230,1317,\"Conversation, log\"\r", "45500000000 1087 230"),
            ("45,ChatGPT,1087,230,1317,x", "left out"),
            ("5,GPT-4,472", "it has too few columns"),
            ("", "it has too few columns"),
            ("x,GPT-4,1,2,3,y", "`x` is no time"),
            ("-1,GPT-4,1,2,3,y", "`-1` is no time"),
            ("5,GPT-4,-3,18,490,x", "`-3` is no number of tokens"),
            ("5,GPT-4,3,1.5,490,x", "`1.5` is no number of tokens"),
        ] {
            check(Kind::BurstGpt, burst, row, expected);
        }
        let azure = "\u{feff}TIMESTAMP,ContextTokens,GeneratedTokens";
        check(Kind::Azure, azure, "1970-01-01 00:00:01.5000000,4808,10", "1500000000 4808 10");
        check(Kind::Azure, azure, "1,4808,10", "`1` is no time");
    }

    #[test]
    fn a_table_without_its_columns_is_none() {
        let error = Columns::of("TIMESTAMP,Tokens", Kind::Azure, "any").unwrap_err();
        assert_eq!(error, "its first line has no column `ContextTokens`");
        assert!(Columns::of("", Kind::BurstGpt, "any").is_err());
        let any = Columns::of("Timestamp,Request tokens,Response tokens", Kind::BurstGpt, "any").unwrap();
        assert!(matches!(any.row(b"1,2,3"), Parsed::Row(_)));
        assert!(matches!(any.row(b"1,2,\xff"), Parsed::Bad(_)));
    }
}
