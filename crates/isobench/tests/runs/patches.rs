//! A patch that can't be applied strictly and whole fails its own arm alone, with its class.

use isobench_schema::failure::FailureClass;

use crate::support::{Place, arm};

/// Returns a patch of `faults.txt` with this hunk.
fn hunk(text: &str) -> Vec<u8> {
    format!("diff --git a/faults.txt b/faults.txt\n--- a/faults.txt\n+++ b/faults.txt\n{text}").into_bytes()
}

const FAULTS: &str = "# Faults of the fake engine, one on each line.";
const SPEED: &str = "# How fast the fake engine answers.";

#[test]
fn every_kind_of_bad_patch_fails_its_arm_alone_with_its_class() {
    let place = Place::new();
    let mut text = place.task_text();
    text.blocks = 1;
    let speed = "diff --git a/speed.txt b/speed.txt\n--- a/speed.txt\n+++ b/speed.txt\n";
    let escape = |path: &str| {
        format!("diff --git a/{path} b/{path}\nnew file mode 100644\n--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")
    };
    let cases: Vec<(&str, Vec<u8>, FailureClass)> = vec![
        ("empty", Vec::new(), FailureClass::PatchEmpty),
        ("no-change", hunk(&format!("@@ -1 +1 @@\n {FAULTS}\n")), FailureClass::PatchEmpty),
        ("rubbish", b"please make it faster\n".to_vec(), FailureClass::PatchMalformed),
        ("rejected", hunk("@@ -1 +1 @@\n-# Something else.\n+short\n"), FailureClass::PatchRejected),
        ("fuzzy", hunk(&format!("@@ -9 +9,2 @@\n {FAULTS}\n+short\n")), FailureClass::PatchFuzzy),
        (
            "partial",
            [hunk(&format!("@@ -1 +1,2 @@\n {FAULTS}\n+short\n")), format!("{speed}@@ -1,2 +1 @@\n {SPEED}\n-x\n").into_bytes()]
                .concat(),
            FailureClass::PatchPartial,
        ),
        ("escaping", escape("../../outside.txt").into_bytes(), FailureClass::PatchEscapes),
        ("absolute", escape("/tmp/isobench-outside.txt").into_bytes(), FailureClass::PatchEscapes),
        (
            "binary",
            b"diff --git a/x.bin b/x.bin\nnew file mode 100644\nindex 0000000..1111111\nGIT binary patch\nliteral 1\nIcmZPo000310RR91\n\n"
                .to_vec(),
            FailureClass::PatchBinary,
        ),
    ];
    for (name, patch, _) in &cases {
        text = place.with_patch(text, name, patch);
    }
    let mut text = place.with_faults(text, "good", &[]);
    text.blocks = 2;
    place.write_task(&text);
    place.expect(100, &["run", "task", "--out", "run", "--allow-unisolated", "--quiet"]);
    let task = place.judgement("run");
    for good in ["baseline", "human"] {
        assert_eq!(arm(&task, good).valid, 2, "{good}");
    }
    for (name, _, class) in &cases {
        let agent = arm(&task, &format!("agent:{name}"));
        let found: Vec<_> = agent.failures.iter().map(|counted| (counted.launches, counted.failure.class)).collect();
        assert_eq!(found, [(2, *class)], "{name}: {agent:#?}");
        let contrast = place.contrast("run", &format!("agent:{name}"), "baseline");
        assert_eq!(contrast["verdict"], "agent-failed", "{contrast}");
    }
    place.check_sound("run");
    assert!(!place.path("outside.txt").exists());
    assert!(!std::path::Path::new("/tmp/isobench-outside.txt").exists());
}
