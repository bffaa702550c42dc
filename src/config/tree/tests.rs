use proptest::prelude::*;

use super::*;

fn value(node: &Node) -> serde_json::Value {
    match &node.kind {
        Kind::Null => serde_json::Value::Null,
        Kind::Bool(value) => (*value).into(),
        Kind::Number(number) => number.clone().into(),
        Kind::Text(text) => text.as_str().into(),
        Kind::List(items) => items.iter().map(value).collect::<Vec<_>>().into(),
        Kind::Map(entries) => entries
            .iter()
            .map(|entry| (entry.key.clone(), value(&entry.value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
    }
}

fn problems(text: &str) -> Vec<String> {
    parse(text).1.iter().map(ToString::to_string).collect()
}

#[test]
fn plain_words_mean_what_the_core_schema_says() {
    let (tree, problems) = parse(
        "[yes, 'true', true, 007, 0x1f, -3, 1.5, 1e3, .inf, ~, null, !!str 5, 0, +7, '', 1.2.3, --, 99999999999999999999999]",
    );
    assert_eq!(problems, []);
    assert_eq!(
        value(&tree.unwrap()),
        serde_json::json!([
            "yes", "true", true, "007", 31, -3, 1.5, 1000.0, ".inf", null, null, "5", 0, 7, "",
            "1.2.3", "--", 1e23
        ])
    );
}

#[test]
fn every_value_knows_its_place() {
    let (tree, _) = parse("a:\n  - b: 1\n    c: x\n  - d\n");
    let tree = tree.unwrap();
    let a = KeyPath::of("a");
    assert_eq!(
        tree.place_of(&a.index(0).key("c")),
        Place { line: 3, column: 8 }
    );
    assert_eq!(tree.place_of(&a.index(1)), Place { line: 4, column: 5 });
    assert_eq!(
        tree.place_of(&a.key("missing")),
        Place { line: 1, column: 1 }
    );
}

#[test]
fn a_duplicate_key_names_both_lines() {
    assert_eq!(
        problems("a: 1\nb:\n  c: 1\n  c: 2\na: 3\n"),
        [
            "4:3 b.c: given twice, first in line 3",
            "5:1 a: given twice, first in line 1"
        ]
    );
}

#[test]
fn broken_yaml_is_reported_with_its_place() {
    for text in [
        "a: {b: 1\n",
        "a:\n\t- b\n",
        "a: 'x\n",
        "a: b: c\n",
        "- a\nb: c\n",
        "a: *x\n",
        "&x [*x]",
        "? [a]\n: b\n",
        "a: 1\n---\nb: 2\n",
        "a: !x y\n",
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1, "{text:?} gave {found:?}");
    }
}

#[test]
fn a_bomb_of_aliases_is_refused() {
    let mut text = String::from("a: &a [x,x,x,x,x,x,x,x,x,x]\n");
    for (this, last) in ["b", "c", "d", "e", "f", "g"]
        .iter()
        .zip(["a", "b", "c", "d", "e", "f"])
    {
        let refs = vec![format!("*{last}"); 10].join(",");
        text.extend([this, ": &", this, " [", refs.as_str(), "]\n"]);
    }
    assert_eq!(problems(&text).len(), 1);
    assert_eq!(problems(&"[".repeat(5000)).len(), 1);
    assert_eq!(problems(&"- ".repeat(5000)).len(), 1);
}

fn any_value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<u32>().prop_map(|n| (f64::from(n) / 8.0).into()),
        "[ -~]{0,12}".prop_map(Into::into),
        // The other writer speaks YAML 1.1, to which U+2028 and U+2029 are line breaks.
        "\\PC{0,6}"
            .prop_filter("line breaks of YAML 1.1", |text| !text
                .contains(['\u{2028}', '\u{2029}']))
            .prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[a-z]{1,6}", inner, 0..4)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "(?s).{0,60}|[-a: \\n{}\\[\\],&*!|>'\"#?%@\\t]{0,60}") {
        let _unused = parse(&text);
    }

    #[test]
    fn what_another_writer_wrote_is_read_alike(expected in any_value()) {
        let text = serde_yaml::to_string(&expected).unwrap();
        let (tree, problems) = parse(&text);
        prop_assert_eq!(problems, vec![], "{}", text);
        prop_assert_eq!(value(&tree.unwrap()), expected, "{}", text);
    }
}
