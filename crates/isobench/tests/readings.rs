//! What is read of benchmark tools, and which failures are known: the pages that say it, and how the tables fit together.

#![allow(clippy::unwrap_used, clippy::panic, reason = "all of it is test code")]

#[path = "support/documents.rs"]
mod documents;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use isobench_analysis::classify::{Seen, Signature, classes, signatures, signatures_by_stage, without_places};
use isobench_analysis::parse::binding::Binding;
use isobench_analysis::parse::{catalogue, read};
use isobench_plan::knowledge::Knowledge;

const TEST: &str = "readings";
const HEAD: &str = "<!-- Written by crates/isobench/tests/readings.rs from the program's tables; don't edit. -->";

/// How many samples of a format there are.
#[derive(Default)]
struct Samples {
    composed: usize,
    real: usize,
}

/// Returns how many samples of each format the corpus has. Those in `real`, and those of that name, were written by the tools
/// themselves.
fn samples() -> BTreeMap<String, Samples> {
    let corpus = documents::root().join("crates/analysis/tests/corpus");
    let mut found: BTreeMap<String, Samples> = BTreeMap::new();
    for folder in ["formats", "layouts", "real"] {
        for entry in fs::read_dir(corpus.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            let Some(format) = format(&path) else { continue };
            let counted = found.entry(format).or_default();
            let is_real = folder == "real" || path.file_name().unwrap().to_string_lossy().starts_with("real-");
            if is_real { counted.real += 1 } else { counted.composed += 1 }
        }
    }
    found
}

fn format(path: &Path) -> Option<String> {
    let file = fs::File::open(path).ok().filter(|_| path.is_file())?;
    read(file, &Binding::default()).unwrap().format
}

#[test]
fn the_page_of_formats_is_what_the_catalogue_says() {
    let samples = samples();
    let mut page = format!(
        "# Formats that are read\n\n{HEAD}\n\n\
         `isobench parse FILE` reads what benchmark tools print and write, and says what was measured or why nothing was. The\n\
         tool and the layout are recognised; `--tool` and `--version` bind them. Samples are the files in\n\
         `crates/analysis/tests/corpus`: *composed* ones have made-up numbers in the layout of the tool's sources, *real* ones\n\
         were written by the tool itself.\n\n\
         | tool | format | looks like | versions | what is read | composed | real |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for format in catalogue::formats() {
        let none = Samples::default();
        let Samples { composed, real } = samples.get(format.id).unwrap_or(&none);
        assert!(composed + real > 0, "`{}` has no sample", format.id);
        let (tool, kind) = (format.tool, format.kind.as_str());
        writeln!(
            page,
            "| `{tool}` | `{}` | {kind} | {} | {} | {composed} | {real} |",
            format.id, format.versions, format.read
        )
        .unwrap();
    }
    page.push_str(
        "\n## Labels and lines of console output\n\n\
         A label counts within its block only. `mean` stands for every statistic that a tool prints, `RANK` for every\n\
         percentile.\n\n| format | label or line | metrics | versions |\n| --- | --- | --- | --- |\n",
    );
    for row in catalogue::printed() {
        let metrics: Vec<String> = row.metrics.iter().map(|metric| format!("`{metric}`")).collect();
        let text = row.text.replace('|', "\\|");
        writeln!(page, "| `{}` | `{text}` | {} | {} |", row.format, metrics.join(", "), row.versions).unwrap();
    }
    documents::hold("docs/formats-read.md", &page, TEST);
}

#[test]
fn the_page_of_failures_is_what_the_table_says() {
    let (real, all) = (signatures().iter().filter(|row| row.seen == Seen::Real).count(), signatures().len());
    let mut page = format!(
        "# Failures that are known\n\n{HEAD}\n\n\
         `isobench classify` finds the cause of a failure in its logs, by the signatures of `knowledge/signatures.toml`;\n\
         `isobench explain ID` tells more of one. Of {all} signatures {real} were seen in logs that the real program wrote; the\n\
         others rest on reports and sources, and on samples composed after them.\n\n\
         | stage | signatures | seen in true logs | composed samples only |\n| --- | --- | --- | --- |\n"
    );
    for count in signatures_by_stage() {
        let (real, template) = (count.real, count.template);
        writeln!(page, "| {} | {} | {real} | {template} |", count.stage, real + template).unwrap();
    }
    page.push_str("\n## Classes\n\n| class | means | signatures |\n| --- | --- | --- |\n");
    for class in classes() {
        let rows = signatures().iter().filter(|row| row.class == class.id);
        let ids: Vec<&str> = rows.map(|row| row.id.as_str()).collect();
        assert!(!ids.is_empty(), "class `{}` has no signature", class.id);
        writeln!(page, "| `{}` | {} | {} |", class.id, class.meaning, ids.join(", ")).unwrap();
    }
    page.push_str(
        "\n## Signatures\n\n| id | class | stage | cause | fix | seen |\n| --- | --- | --- | --- | --- | --- |\n",
    );
    let mut rows: Vec<&Signature> = signatures().iter().collect();
    rows.sort_by_key(|row| order(&row.id));
    for row in rows {
        let seen = match row.seen {
            Seen::Real => "real",
            Seen::Template => "composed",
        };
        let [cause, fix] = [&row.cause, &row.fix.advice].map(|text| without_places(text).replace('|', "\\|"));
        writeln!(page, "| {} | `{}` | {} | {cause} | {fix} | {seen} |", row.id, row.class, row.stage).unwrap();
    }
    documents::hold("docs/failures.md", &page, TEST);
}

/// Returns what ids are sorted by: the family, then the number.
fn order(id: &str) -> (String, u32) {
    let family: String = id.chars().take_while(char::is_ascii_alphabetic).collect();
    let number = id.chars().skip_while(char::is_ascii_alphabetic).collect::<String>();
    (family, number.parse().unwrap_or_default())
}

#[test]
fn recipes_and_signatures_name_each_other() {
    let knowledge = Knowledge::embedded();
    let recipes: Vec<_> = knowledge.recipes.recipe.iter().collect();
    for row in signatures() {
        for id in &row.fix.recipes {
            let recipe = recipes.iter().find(|recipe| recipe.id == *id);
            let recipe = recipe.unwrap_or_else(|| panic!("{} names the recipe `{id}`, which isn't known", row.id));
            assert!(recipe.symptoms.contains(&row.id), "`{id}` doesn't name {} as a symptom", row.id);
        }
    }
    for recipe in recipes {
        for id in &recipe.symptoms {
            let row = signatures().iter().find(|row| row.id == *id);
            let row = row.unwrap_or_else(|| panic!("`{}` names the signature {id}, which isn't known", recipe.id));
            assert!(row.fix.recipes.contains(&recipe.id), "{id} doesn't name the recipe `{}`", recipe.id);
        }
    }
}
