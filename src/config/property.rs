//! What holds for every configuration file: properties, for the tests and for the fuzz targets.

use std::path::Path;

use super::check::Purpose;
use super::load::{build, utf8};
use super::problem::Problem;
use super::{tree, walk};

/// A file of any bytes is a configuration, which written in another way is the same, or has problems
/// that each say where they are.
pub fn a_file_is_valid_or_its_problems_have_places(bytes: &[u8]) {
    let (folder, home) = (Path::new("/nowhere/config"), Some(Path::new("/nowhere")));
    let text = match utf8(bytes) {
        Ok(text) => text,
        Err(problem) => return says_where(&problem, bytes),
    };
    match build(text, folder, home, None, Purpose::Look) {
        Err(found) => {
            assert!(!found.problems.is_empty(), "refused without a reason");
            let all = found.problems.iter().chain(&found.warnings);
            all.for_each(|problem| says_where(problem, bytes));
        }
        Ok(built) => {
            built
                .warnings
                .iter()
                .for_each(|warning| says_where(warning, bytes));
            let (value, _) = walk::walk(&built.tree);
            let again = serde_yaml::to_string(&value).map(|text| {
                let (tree, problems) = tree::parse(&text);
                assert_eq!((tree.is_some(), problems), (true, Vec::new()), "{text}");
                build(&text, folder, home, None, Purpose::Look).map(|built| built.config)
            });
            let again = again.ok().and_then(Result::ok);
            assert_eq!(again.as_ref(), Some(&built.config), "{value}");
        }
    }
}

fn says_where(problem: &Problem, bytes: &[u8]) {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count() + 1;
    // YAML ends lines with CR as well.
    let lines = lines + bytes.iter().filter(|byte| **byte == b'\r').count();
    let is_there = problem
        .place
        .is_some_and(|place| (1..=lines + 1).contains(&place.line) && place.column >= 1);
    assert!(
        is_there,
        "{problem} in {:?}",
        String::from_utf8_lossy(bytes)
    );
    assert!(!problem.message.is_empty());
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FULL: &[u8] = include_bytes!("../../fuzz/corpus/config/full.yaml");

    proptest! {
        #[test]
        fn any_bytes_are_a_configuration_or_have_problems_with_places(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            a_file_is_valid_or_its_problems_have_places(&bytes);
        }

        #[test]
        fn a_file_with_any_part_cut_out_or_replaced_is_valid_or_says_where_it_is_not(
            (from, to) in (0..FULL.len(), 0..FULL.len()),
            text in "|[-a: \\n{}\\[\\],&*!|>'\"#?%@\\t~0-9.]{1,6}|(?s).{0,4}|true|null|99999999999999999999|-1|1e99|\\.inf",
        ) {
            let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 40));
            let file = [&FULL[..from], text.as_bytes(), &FULL[to..]].concat();
            a_file_is_valid_or_its_problems_have_places(&file);
        }
    }

    #[test]
    fn a_full_file_written_in_another_way_is_the_same_configuration() {
        a_file_is_valid_or_its_problems_have_places(FULL);
        let text = std::str::from_utf8(FULL).unwrap();
        let built = build(
            text,
            Path::new("/a"),
            Some(Path::new("/b")),
            None,
            Purpose::Look,
        );
        assert_eq!(built.err(), None, "the file is valid");
    }
}
