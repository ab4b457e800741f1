//! Gathers what a document says in its single values; lists are passed over, whatever their length.
//!
//! A value is found by its path, the keys from the top joined by `/`. Only the elements of three lists are records of
//! their own: those of a list at the top, of `benchmarks` (GuideLLM) and of `results` (inference-benchmarker). The last
//! of them is kept, and how many there were. PyTorch benchmark records, each of which holds one metric, are put together
//! under the paths `metric/NAME`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use super::lexer::{Container, Keep, Lexer, Scalar, Stop, Token};

/// How many values a record may have outside of lists.
const MOST_LEAVES: usize = 20_000;
/// How many objects deep values are gathered; deeper ones mean nothing here.
const DEEPEST_PATH: usize = 8;
/// How many values of one metric are kept.
const MOST_VALUES: usize = 1_000;
/// The lists, other than one at the top, whose elements are records.
const LISTS_OF_RECORDS: [&str; 2] = ["benchmarks", "results"];
/// The list whose numbers are kept.
const LIST_OF_VALUES: &str = "metric/benchmark_values";

/// What is at a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    /// A value that holds no other.
    Scalar(Scalar),
    /// The numbers of a list. Only those of PyTorch benchmark records are kept.
    Numbers(Vec<f64>),
    /// An object or another list.
    Group,
}

/// A value and where it is.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Leaf {
    pub(super) value: Value,
    pub(super) line: u64,
    /// Whether the key was there before with another value.
    pub(super) contradicted: bool,
}

/// What an object says.
#[derive(Debug, Clone, Default)]
pub(super) struct Record {
    leaves: BTreeMap<String, Leaf>,
    /// The line in which it begins.
    pub(super) line: u64,
}

impl Record {
    /// Returns what is at a path.
    pub(super) fn get(&self, path: &str) -> Option<&Leaf> {
        self.leaves.get(path)
    }

    /// Returns the text at a path.
    pub(super) fn text(&self, path: &str) -> Option<&str> {
        match self.get(path).map(|leaf| &leaf.value) {
            Some(Value::Scalar(Scalar::Text(text))) => Some(text),
            Some(Value::Scalar(_) | Value::Numbers(_) | Value::Group) | None => None,
        }
    }

    /// Returns the single value at a path.
    pub(super) fn scalar(&self, path: &str) -> Option<&Scalar> {
        match self.get(path).map(|leaf| &leaf.value) {
            Some(Value::Scalar(scalar)) => Some(scalar),
            Some(Value::Numbers(_) | Value::Group) | None => None,
        }
    }

    /// Returns the number at a path, if it is finite.
    pub(super) fn number(&self, path: &str) -> Option<f64> {
        match self.scalar(path) {
            Some(Scalar::Number(number)) if number.is_finite() => Some(*number),
            Some(Scalar::Number(_) | Scalar::NotFinite(_) | Scalar::Text(_) | Scalar::Flag(_) | Scalar::Null)
            | None => None,
        }
    }

    /// Returns every path that begins so, with what is there and without the beginning.
    pub(super) fn under<'a>(&'a self, beginning: &'a str) -> impl Iterator<Item = (&'a str, &'a Leaf)> {
        let from = self.leaves.range::<str, _>((Bound::Included(beginning), Bound::Unbounded));
        from.map_while(move |(path, leaf)| path.strip_prefix(beginning).map(|rest| (rest, leaf)))
    }

    fn put(&mut self, path: &str, value: Value, line: u64) -> Result<(), Stop> {
        if let Some(known) = self.leaves.get_mut(path) {
            let contradicted = known.contradicted || known.value != value;
            *known = Leaf { value, line, contradicted };
        } else if self.leaves.len() < MOST_LEAVES {
            self.leaves.insert(path.to_owned(), Leaf { value, line, contradicted: false });
        } else {
            return Err(Stop::Wrong(format!("a record has more than {MOST_LEAVES} values outside of lists")));
        }
        Ok(())
    }
}

/// One value at the top of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct Document {
    /// What it says itself.
    pub(super) root: Record,
    /// The last record of its list of records.
    pub(super) last: Option<Record>,
    /// How many records that list has.
    pub(super) records: u64,
    /// The paths at which those records say different things, of those that were asked for.
    pub(super) differing: BTreeSet<&'static str>,
    first: Option<Record>,
}

impl Document {
    /// Returns the last record of a list at the top of which nothing else is known.
    pub(super) fn only_records(&self) -> Option<&Record> {
        self.last.as_ref().filter(|_| self.root.leaves.is_empty())
    }
}

/// What a file begins with after what was read.
pub(super) enum Next {
    /// A whole document.
    Document(Document),
    /// Nothing.
    End,
    /// Something that is no document; so much of it was read.
    Stopped(Stop, Document),
}

/// Reads the next document. `settings` are the paths by which records of a list are told apart.
pub(super) fn next(lexer: &mut Lexer<'_>, settings: &[&'static str]) -> Next {
    let mut gatherer = Gatherer::default();
    match lexer.next(Keep::Values) {
        Ok(Token::End) => return Next::End,
        Ok(Token::Open(container)) => {
            gatherer.document.root.line = lexer.line();
            gatherer.open(container);
        }
        Ok(Token::Close(_) | Token::Key(_) | Token::Scalar(_)) => {
            return Next::Stopped(Stop::Wrong("a value at the top is no object".to_owned()), gatherer.document);
        }
        Err(stop) => return Next::Stopped(stop, gatherer.document),
    }
    while !gatherer.scopes.is_empty() {
        let keep = if gatherer.scopes.last() == Some(&Scope::Passed) { Keep::Nothing } else { Keep::Values };
        let taken = lexer.next(keep).and_then(|token| gatherer.take(token, lexer.line(), settings));
        if let Err(stop) = taken {
            return Next::Stopped(stop, gatherer.document);
        }
    }
    Next::Document(gatherer.document)
}

/// What is open while a document is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// An object whose values are gathered. The path was so long before it.
    Object(usize),
    /// A list whose elements are records.
    Records,
    /// A record in that list.
    Record,
    /// The list whose numbers are kept.
    Values,
    /// A list or object that is passed over.
    Passed,
}

#[derive(Default)]
struct Gatherer {
    document: Document,
    scopes: Vec<Scope>,
    /// The path of the innermost object.
    path: String,
    /// The key that was read last.
    key: String,
    record: Option<Record>,
    values: Vec<f64>,
}

impl Gatherer {
    fn take(&mut self, token: Token, line: u64, settings: &[&'static str]) -> Result<(), Stop> {
        match token {
            Token::Open(_) if self.scopes.last() == Some(&Scope::Passed) => self.scopes.push(Scope::Passed),
            Token::Open(container) => {
                let path = self.path_of_key();
                let is_named = matches!(self.scopes.last(), Some(Scope::Object(_) | Scope::Record));
                match self.open(container) {
                    Scope::Record => self.record = Some(Record { line, ..Record::default() }),
                    Scope::Object(_) | Scope::Records | Scope::Passed if is_named => {
                        self.record_mut().put(&path, Value::Group, line)?;
                    }
                    Scope::Object(_) | Scope::Records | Scope::Passed | Scope::Values => {}
                }
            }
            Token::Close(_) => match self.scopes.pop() {
                Some(Scope::Object(length)) => self.path.truncate(length),
                Some(Scope::Record) => self.finish_record(settings)?,
                Some(Scope::Values) => {
                    // Not by the last key: an object within the list may have had one.
                    let values = Value::Numbers(std::mem::take(&mut self.values));
                    self.record_mut().put(LIST_OF_VALUES, values, line)?;
                }
                Some(Scope::Records | Scope::Passed) | None => {}
            },
            Token::Key(key) => self.key = key,
            Token::Scalar(scalar) => match self.scopes.last() {
                Some(Scope::Object(_) | Scope::Record) => self.put(Value::Scalar(scalar), line)?,
                Some(Scope::Values) => self.keep(&scalar)?,
                Some(Scope::Records | Scope::Passed) | None => {}
            },
            Token::End => {}
        }
        Ok(())
    }

    /// Opens what a value holds, and returns as what.
    fn open(&mut self, container: Container) -> Scope {
        let path = self.path_of_key();
        let scope = match (self.scopes.last(), container) {
            (None, Container::Object) => Scope::Object(0),
            (None, Container::List) => Scope::Records,
            (Some(Scope::Records), Container::Object) => {
                self.path.clear();
                Scope::Record
            }
            (Some(Scope::Object(_) | Scope::Record), Container::Object) if self.scopes.len() < DEEPEST_PATH => {
                let length = self.path.len();
                self.path = path;
                Scope::Object(length)
            }
            (Some(Scope::Object(_) | Scope::Record), Container::List) if path == LIST_OF_VALUES => Scope::Values,
            (Some(Scope::Object(_)), Container::List)
                if self.record.is_none() && LISTS_OF_RECORDS.contains(&path.as_str()) =>
            {
                Scope::Records
            }
            (Some(_), Container::Object | Container::List) => Scope::Passed,
        };
        self.scopes.push(scope);
        scope
    }

    fn path_of_key(&self) -> String {
        if self.path.is_empty() { self.key.clone() } else { format!("{}/{}", self.path, self.key) }
    }

    fn put(&mut self, value: Value, line: u64) -> Result<(), Stop> {
        let path = self.path_of_key();
        self.record_mut().put(&path, value, line)
    }

    fn record_mut(&mut self) -> &mut Record {
        self.record.as_mut().unwrap_or(&mut self.document.root)
    }

    fn keep(&mut self, scalar: &Scalar) -> Result<(), Stop> {
        if self.values.len() >= MOST_VALUES {
            return Err(Stop::Wrong(format!("`{LIST_OF_VALUES}` has more than {MOST_VALUES} values")));
        }
        self.values.push(match scalar {
            Scalar::Number(number) => *number,
            Scalar::NotFinite(_) | Scalar::Text(_) | Scalar::Flag(_) | Scalar::Null => f64::NAN,
        });
        Ok(())
    }

    /// Takes a record of a list that is whole.
    fn finish_record(&mut self, settings: &[&'static str]) -> Result<(), Stop> {
        self.path.clear();
        let Some(record) = self.record.take() else { return Ok(()) };
        self.document.records += 1;
        if let (Some(name), Some(leaf)) = (record.text("metric/name"), record.get(LIST_OF_VALUES)) {
            self.document.root.put(&format!("metric/{name}"), leaf.value.clone(), leaf.line)?;
            for beginning in ["benchmark/name", "metric/extra_info/"] {
                for (rest, leaf) in record.under(beginning) {
                    let path = format!("{}{rest}", beginning.strip_prefix("metric/").unwrap_or(beginning));
                    // Every record of a file repeats what is said of the run: what was said last counts.
                    self.document.root.leaves.remove(&path);
                    self.document.root.put(&path, leaf.value.clone(), leaf.line)?;
                }
            }
        }
        let first = self.document.first.get_or_insert_with(|| record.clone());
        self.document.differing.extend(settings.iter().filter(|path| first.scalar(path) != record.scalar(path)));
        self.document.last = Some(record);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Document {
        let mut input = text.as_bytes();
        let mut lexer = Lexer::new(&mut input);
        match next(&mut lexer, &["rate"]) {
            Next::Document(document) => document,
            Next::End => panic!("{text} holds a document"),
            Next::Stopped(stop, _) => panic!("{text} stops: {stop:?}"),
        }
    }

    #[test]
    fn single_values_are_found_by_path_and_lists_are_passed_over() {
        let document = read(
            r#"{"a": 1, "b": {"c": {"d": 2}, "e": [{"a": 9}, [3]]}, "results": [{"rate": 1}, {"rate": 2, "x": {"y": 5}}], "f": 6}"#,
        );
        assert_eq!(document.root.number("a"), Some(1.0));
        assert_eq!(document.root.number("b/c/d"), Some(2.0));
        assert_eq!(document.root.get("b/e").map(|leaf| &leaf.value), Some(&Value::Group));
        assert_eq!(document.root.number("f"), Some(6.0));
        assert_eq!(document.root.under("b/").map(|(path, _)| path).collect::<Vec<_>>(), ["c", "c/d", "e"]);
        assert_eq!(document.records, 2);
        assert_eq!(document.last.and_then(|last| last.number("x/y")), Some(5.0));
        assert_eq!(document.differing.into_iter().collect::<Vec<_>>(), ["rate"]);
    }

    #[test]
    fn a_list_of_records_within_a_record_is_passed_over() {
        let document = read(r#"{"benchmarks": [{"benchmarks": [{"a": 1}, {"a": 2}], "b": 3}]}"#);
        assert_eq!(document.records, 1);
        assert_eq!(document.last.as_ref().and_then(|last| last.number("b")), Some(3.0));
        assert_eq!(document.last.as_ref().and_then(|last| last.number("a")), None);
    }

    #[test]
    fn a_key_that_says_two_things_is_marked() {
        let document = read(r#"{"a": 1, "a": 1, "b": 1, "b": 2}"#);
        assert_eq!(document.root.get("a").map(|leaf| leaf.contradicted), Some(false));
        assert_eq!(document.root.get("b").map(|leaf| leaf.contradicted), Some(true));
    }

    #[test]
    fn metrics_of_pytorch_records_are_put_together() {
        let document = read(
            r#"[{"benchmark": {"name": "vLLM benchmark"}, "metric": {"name": "mean_ttft_ms", "benchmark_values": [1.5],
            "extra_info": {"completed": 2}}}, {"metric": {"name": "latency", "benchmark_values": [1, NaN]}}]"#,
        );
        assert_eq!(document.root.text("benchmark/name"), Some("vLLM benchmark"));
        assert_eq!(document.root.number("extra_info/completed"), Some(2.0));
        assert_eq!(document.root.get("metric/mean_ttft_ms").map(|leaf| &leaf.value), Some(&Value::Numbers(vec![1.5])));
        assert!(
            matches!(&document.root.get("metric/latency").expect("it is there").value, Value::Numbers(values) if values.len() == 2)
        );
    }

    #[test]
    fn too_many_values_are_refused() {
        let values: Vec<String> = (0..=MOST_LEAVES).map(|index| format!("\"{index}\": 1")).collect();
        let text = format!("{{{}}}", values.join(","));
        let mut input = text.as_bytes();
        let mut lexer = Lexer::new(&mut input);
        assert!(matches!(next(&mut lexer, &[]), Next::Stopped(Stop::Wrong(_), _)));
    }
}
