//! Reads objectives, and says where one can't be read.

use super::{Comparison, Relation, RequestMetric, Rule};

/// How deep parentheses and negations may be nested.
const DEEPEST: usize = 64;

/// Why a text is no objective.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("at character {place} of the objective `{objective}`: {problem}")]
pub struct ParseObjectiveError {
    /// The text.
    objective: String,
    /// The character that can't be read, from 1.
    pub place: usize,
    /// What is wrong there, and what is right.
    problem: String,
}

/// Reads an objective in either form.
pub(super) fn parse(text: &str) -> Result<Rule, ParseObjectiveError> {
    let mut parser = Parser { text, at: 0, depth: 0 };
    let rule = if text.contains(':') { parser.pairs() } else { parser.whole() };
    rule.map_err(|problem| ParseObjectiveError {
        objective: text.to_owned(),
        place: text.get(..parser.at).unwrap_or(text).chars().count() + 1,
        problem,
    })
}

struct Parser<'a> {
    text: &'a str,
    /// Where it reads, in bytes.
    at: usize,
    depth: usize,
}

impl<'a> Parser<'a> {
    fn whole(&mut self) -> Result<Rule, String> {
        let rule = self.any()?;
        match self.rest().chars().next() {
            None => Ok(rule),
            Some(')') => Err("this parenthesis was never opened".to_owned()),
            Some(_) => Err("expected `&&`, `||` or the end".to_owned()),
        }
    }

    fn any(&mut self) -> Result<Rule, String> {
        let mut rules = vec![self.all()?];
        while self.take("||") {
            rules.push(self.all()?);
        }
        Ok(joined(rules, Rule::Any))
    }

    fn all(&mut self) -> Result<Rule, String> {
        let mut rules = vec![self.not()?];
        while self.take("&&") {
            rules.push(self.not()?);
        }
        Ok(joined(rules, Rule::All))
    }

    fn not(&mut self) -> Result<Rule, String> {
        let is_negated = self.take("!");
        if !is_negated && !self.take("(") {
            return self.comparison().map(Rule::Is);
        }
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(format!("nested deeper than {DEEPEST}"));
        }
        let rule = if is_negated {
            Rule::Not(Box::new(self.not()?))
        } else {
            let rule = self.any()?;
            if !self.take(")") {
                return Err("expected `)`, `&&` or `||`".to_owned());
            }
            rule
        };
        self.depth -= 1;
        Ok(rule)
    }

    fn comparison(&mut self) -> Result<Comparison, String> {
        let metric = self.metric()?;
        // The longer spelling comes first, of which the shorter one is the beginning.
        let relations =
            [("<=", Relation::UpTo), ("<", Relation::Below), (">=", Relation::From), (">", Relation::Above)];
        let relation = relations.into_iter().find(|(spelling, _)| self.take(spelling));
        let (_, relation) = relation.ok_or("expected `<`, `<=`, `>` or `>=`")?;
        let number = self.number()?;
        let bound = if metric.is_duration() { number * self.unit()? } else { number };
        Ok(Comparison { metric, relation, bound })
    }

    fn pairs(&mut self) -> Result<Rule, String> {
        let mut rules = Vec::new();
        while !self.rest().is_empty() {
            let metric = self.metric()?;
            if !self.take(":") {
                return Err(
                    "expected `:` and a bound in milliseconds; the forms `ttft:200` and `ttft<200ms` can't be \
                            mixed"
                        .to_owned(),
                );
            }
            let bound = self.number()?;
            rules.push(Rule::Is(Comparison { metric, relation: Relation::UpTo, bound }));
            let is_at_blank = self.peek().is_none_or(char::is_whitespace);
            if !self.take(",") && !is_at_blank {
                return Err("expected a blank, `,` or the end: bounds of this form are in milliseconds".to_owned());
            }
        }
        Ok(joined(rules, Rule::All))
    }

    fn metric(&mut self) -> Result<RequestMetric, String> {
        let name = self.word(|c| c.is_ascii_alphanumeric() || c == '_');
        let known = RequestMetric::NAMES.iter().find(|(known, _)| *known == name);
        known.map(|(_, metric)| *metric).ok_or_else(|| {
            self.at -= name.len();
            let names: Vec<&str> = RequestMetric::NAMES.iter().map(|(name, _)| *name).collect();
            let names = names.join(", ");
            if name.is_empty() {
                format!("expected a metric, one of {names}")
            } else {
                format!("`{name}` is no metric of a request, which are {names}")
            }
        })
    }

    fn number(&mut self) -> Result<f64, String> {
        let digits = self.word(|c| c.is_ascii_digit() || c == '.');
        digits.parse::<f64>().ok().filter(|number| number.is_finite()).ok_or_else(|| {
            self.at -= digits.len();
            "expected a number that isn't negative, such as `200` or `0.5`".to_owned()
        })
    }

    /// Returns the milliseconds of a unit.
    fn unit(&mut self) -> Result<f64, String> {
        let unit = self.word(char::is_alphabetic);
        match unit {
            "us" | "µs" => Ok(1e-3),
            "ms" => Ok(1.0),
            "s" => Ok(1e3),
            _ => {
                self.at -= unit.len();
                Err("expected a unit of time: `us`, `ms` or `s`".to_owned())
            }
        }
    }

    /// Skips white space and returns what follows.
    fn rest(&mut self) -> &'a str {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let trimmed = rest.trim_start();
        self.at += rest.len() - trimmed.len();
        trimmed
    }

    /// Returns the next character, white space included.
    fn peek(&self) -> Option<char> {
        self.text.get(self.at..)?.chars().next()
    }

    fn take(&mut self, spelling: &str) -> bool {
        let is_there = self.rest().starts_with(spelling);
        if is_there {
            self.at += spelling.len();
        }
        is_there
    }

    fn word(&mut self, belongs: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
        self.at += end;
        rest.get(..end).unwrap_or_default()
    }
}

/// Returns a single rule as it is and several ones joined.
fn joined(mut rules: Vec<Rule>, join: impl Fn(Vec<Rule>) -> Rule) -> Rule {
    match (rules.pop(), rules.is_empty()) {
        (Some(single), true) => single,
        (last, _) => {
            rules.extend(last);
            join(rules)
        }
    }
}
