//! What holds for every log: properties, for the tests and for the fuzz targets.

use std::io::BufReader;

use chrono::Datelike;

use super::Record;
use super::lines::{Lines, MAX_LINE, Next};

/// A log of any bytes is read to its end, line by line, however reads cut it; a line is a record, which
/// is written again alike, or it is passed over.
pub fn a_log_of_any_bytes_is_read_to_its_end(bytes: &[u8]) {
    let mut expected: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
    let half = expected.pop().unwrap_or_default();
    for cut in [1, 7, 8192] {
        let mut input = BufReader::with_capacity(cut, bytes);
        let mut lines = Lines::default();
        for line in &expected {
            match lines.read(&mut input) {
                Ok(Next::Line) => assert_eq!(lines.line(), *line),
                Ok(Next::TooLong) => assert!(line.len() > MAX_LINE),
                other => assert!(other.is_err(), "the end before the end: {other:?}"),
            }
        }
        assert!(matches!(lines.read(&mut input), Ok(Next::End)));
        assert_eq!(lines.give_up(), !half.is_empty(), "a half line is known");
    }
    for line in expected {
        // A zone can lead out of the years that are written with four digits.
        let record = Record::parse(line).filter(|it| (0..=9999).contains(&it.ts.year()));
        if let Some(record) = record {
            let written = record.to_json();
            let again = Record::parse(written.as_bytes()).map(|again| again.to_json());
            assert_eq!(again.as_ref(), Some(&written));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;
    use crate::eventlog::{Beginning, Filter, Follower, tail};

    const RECORD: &[u8] =
        br#"{"ts":"2026-11-30T14:05:41.007Z","event":"poll.cycle","pid":7,"chars":3}"#;

    /// Records, halves of records, and what is none.
    fn any_line() -> impl Strategy<Value = Vec<u8>> {
        prop_oneof![
            Just(RECORD.to_vec()),
            (0..RECORD.len()).prop_map(|cut| RECORD[..cut].to_vec()),
            (0..RECORD.len(), any::<u8>()).prop_map(|(at, byte)| {
                let mut line = RECORD.to_vec();
                line[at] = byte;
                line
            }),
            "[+-]?[0-9]{4,6}-1[0-2]-[0-3][0-9]T[0-2][0-9]:00:[0-6]0(\\.[0-9]{1,12})?(Z|[+-][0-2][0-9]:00)"
                .prop_map(|ts| format!("{{\"ts\":\"{ts}\",\"event\":\"e\",\"level\":\"loud\"}}").into_bytes()),
            prop::collection::vec(any::<u8>(), 0..40),
        ]
    }

    /// Files of lines; the last line of a file may lack its end.
    fn any_files() -> impl Strategy<Value = Vec<Vec<u8>>> {
        let file = (prop::collection::vec(any_line(), 0..6), any::<bool>());
        let file = file.prop_map(|(lines, ended)| {
            let mut file = lines.join(&b'\n');
            file.extend(ended.then_some(b'\n'));
            file
        });
        prop::collection::vec(file, 1..4)
    }

    /// How many lines of these files are records, and how many are something else.
    fn counted(files: &[Vec<u8>]) -> (usize, u64) {
        let lines = files.iter().flat_map(|file| {
            file.split(|byte| *byte == b'\n')
                .map(move |line| (line, file))
        });
        let (mut records, mut others) = (0, 0);
        for (line, file) in lines {
            // A half line is no record yet, even one that looks like it.
            let is_half = std::ptr::eq(line.as_ptr_range().end, file.as_ptr_range().end);
            match Record::parse(line) {
                Some(_) if !is_half => records += 1,
                _ if is_half => others += u64::from(!line.is_empty()),
                _ => others += u64::from(!line.trim_ascii().is_empty()),
            }
        }
        (records, others)
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_to_their_end_however_reads_cut_them(lines in prop::collection::vec(any_line(), 0..8)) {
            a_log_of_any_bytes_is_read_to_its_end(&lines.join(&b'\n'));
        }

        #[test]
        fn no_line_of_any_file_hides_a_record_of_another(files in any_files()) {
            let folder = TempDir::new().unwrap();
            let path = folder.path().join("events.jsonl");
            for (number, file) in files.iter().enumerate() {
                let is_last = number + 1 == files.len();
                let name = if is_last { path.clone() } else { folder.path().join(format!("events.jsonl.{}", number + 1)) };
                fs::write(name, file).unwrap();
            }

            let tail = tail(&path, Filter::default(), usize::MAX).unwrap();

            prop_assert_eq!((tail.records.len(), tail.skipped), counted(&files));
            let mut follower = Follower::open(&path, Filter::default(), Beginning::CurrentFile).unwrap();
            let mut followed = 0;
            while follower.try_next().unwrap().is_some() {
                followed += 1;
            }
            prop_assert_eq!(followed, counted(&files[files.len() - 1..]).0);
        }
    }

    #[test]
    fn a_line_of_megabytes_hides_no_record_of_its_file() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("events.jsonl");
        let huge = vec![0xff; 3 << 20];
        fs::write(
            &path,
            [RECORD, b"\n", &huge, b"\n", RECORD, b"\n", &huge].concat(),
        )
        .unwrap();

        let tail = tail(&path, Filter::default(), usize::MAX).unwrap();

        assert_eq!((tail.records.len(), tail.skipped), (2, 2));
    }
}
