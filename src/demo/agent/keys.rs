//! Terminal bytes to keys, however the bytes are cut into reads.

const PASTE_START: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// A terminal never sends longer ones; what is longer is noise.
const LONGEST_SEQUENCE: usize = 64;

/// More than any message may have; the rest of a longer paste is not kept.
const LONGEST_PASTE: usize = 4 << 20;

/// What the person, or a program in their place, did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    /// Characters that were typed.
    Text(String),
    /// A bracketed paste, with its line ends as LF.
    Paste(String),
    Enter,
    Backspace,
    /// Ctrl-U.
    ClearLine,
    /// Ctrl-C.
    Interrupt,
    /// Ctrl-D.
    EndOfInput,
    /// Arrows, focus reports and whatever else a line editor does without.
    Other,
}

/// Turns bytes into keys and keeps what is not complete yet.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pending: Vec<u8>,
    paste: Option<Vec<u8>>,
}

impl Keys {
    /// Takes the bytes of one read and returns the keys that they complete.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Key> {
        let mut found = Vec::new();
        self.pending.extend_from_slice(bytes);
        while !self.pending.is_empty() {
            let used = if self.paste.is_some() {
                self.in_paste(&mut found)
            } else {
                self.outside_paste(&mut found)
            };
            if used == 0 {
                break;
            }
            self.pending.drain(..used);
        }
        found
    }

    fn in_paste(&mut self, found: &mut Vec<Key>) -> usize {
        let end = find(&self.pending, PASTE_END);
        // The end mark may be cut in two: its possible beginning stays.
        let content = end.unwrap_or(self.pending.len() - cut_mark(&self.pending));
        let mut pasted = self.paste.take().unwrap_or_default();
        let room = LONGEST_PASTE.saturating_sub(pasted.len()).min(content);
        pasted.extend_from_slice(&self.pending[..room]);
        match end {
            Some(end) => {
                found.push(Key::Paste(with_lf(&String::from_utf8_lossy(&pasted))));
                end + PASTE_END.len()
            }
            None => {
                self.paste = Some(pasted);
                content
            }
        }
    }

    fn outside_paste(&mut self, found: &mut Vec<Key>) -> usize {
        match self.pending[0] {
            0x1b => self.escape(found),
            // Before the terminal is raw it turns CR into LF; both are the same key.
            b'\r' | b'\n' => push(found, Key::Enter),
            0x03 => push(found, Key::Interrupt),
            0x04 => push(found, Key::EndOfInput),
            0x15 => push(found, Key::ClearLine),
            0x08 | 0x7f => push(found, Key::Backspace),
            0x00..0x20 => push(found, Key::Other),
            _ => self.text(found),
        }
    }

    fn escape(&mut self, found: &mut Vec<Key>) -> usize {
        match self.pending.get(1) {
            None => 0,
            Some(b'[') => {
                let after = &self.pending[2..];
                let Some(last) = after.iter().position(|byte| (0x40..0x7f).contains(byte)) else {
                    return if after.len() > LONGEST_SEQUENCE { 2 } else { 0 };
                };
                let used = last + 3;
                if &self.pending[..used] == PASTE_START {
                    self.paste = Some(Vec::new());
                } else {
                    found.push(Key::Other);
                }
                used
            }
            Some(b'O') if self.pending.len() < 3 => 0,
            Some(b'O') => {
                found.push(Key::Other);
                3
            }
            Some(_) => push(found, Key::Other),
        }
    }

    fn text(&mut self, found: &mut Vec<Key>) -> usize {
        let end = self
            .pending
            .iter()
            .position(|byte| *byte < 0x20 || *byte == 0x7f)
            .unwrap_or(self.pending.len());
        let bytes = &self.pending[..end];
        let complete = match std::str::from_utf8(bytes) {
            // A character that is cut by the end of the read waits for its rest.
            Err(error) if error.error_len().is_none() && end == self.pending.len() => {
                error.valid_up_to()
            }
            _ => end,
        };
        if complete > 0 {
            let text = String::from_utf8_lossy(&bytes[..complete]).into_owned();
            found.push(Key::Text(text));
        }
        complete
    }
}

fn push(found: &mut Vec<Key>, key: Key) -> usize {
    found.push(key);
    1
}

fn find(bytes: &[u8], mark: &[u8]) -> Option<usize> {
    bytes.windows(mark.len()).position(|part| part == mark)
}

/// Returns how many bytes at the end may be the beginning of the end mark.
fn cut_mark(bytes: &[u8]) -> usize {
    (1..PASTE_END.len())
        .rev()
        .find(|length| bytes.ends_with(&PASTE_END[..*length]))
        .unwrap_or(0)
}

fn with_lf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(parts: &[&[u8]]) -> Vec<Key> {
        let mut keys = Keys::default();
        parts.iter().flat_map(|part| keys.feed(part)).collect()
    }

    #[test]
    fn a_paste_keeps_its_lines_and_submits_nothing() {
        assert_eq!(
            all(&[b"\x1b[200~one\rtwo\r\nthree\x03\x1b[201~\r"]),
            [Key::Paste("one\ntwo\nthree\u{3}".to_owned()), Key::Enter]
        );
    }

    #[test]
    fn bytes_mean_the_same_however_reads_cut_them() {
        let bytes =
            "a\u{e9}\u{1f642}\x1b[200~p\u{e4}\rq\x1b[20x\x1b[201~\x1b[A\x1bOPz\r".as_bytes();
        let whole: Vec<_> = joined(all(&[bytes]));
        for cut in 0..=bytes.len() {
            let (left, right) = bytes.split_at(cut);
            assert_eq!(joined(all(&[left, right])), whole, "cut at {cut}");
        }
        let single: Vec<_> = bytes.chunks(1).collect();
        assert_eq!(joined(all(&single)), whole);
    }

    /// Typed text may come in several pieces.
    fn joined(keys: Vec<Key>) -> Vec<Key> {
        let mut found: Vec<Key> = Vec::new();
        for key in keys {
            match (found.last_mut(), key) {
                (Some(Key::Text(text)), Key::Text(more)) => text.push_str(&more),
                (_, key) => found.push(key),
            }
        }
        found
    }

    #[test]
    fn lines_without_a_bracket_are_each_submitted() {
        assert_eq!(
            all(&[b"one\rtwo\n"]),
            [
                Key::Text("one".to_owned()),
                Key::Enter,
                Key::Text("two".to_owned()),
                Key::Enter
            ]
        );
    }

    #[test]
    fn broken_utf8_and_endless_sequences_do_not_block() {
        assert_eq!(
            all(&[b"\xff\xfex"]),
            [Key::Text("\u{fffd}\u{fffd}x".to_owned())]
        );
        let mut endless = b"\x1b[".to_vec();
        endless.extend([b'1'; LONGEST_SEQUENCE + 8]);
        endless.push(b'\r');
        assert_eq!(all(&[&endless]).last(), Some(&Key::Enter));
    }

    #[test]
    fn a_paste_that_never_ends_stays_bounded() {
        let mut keys = Keys::default();
        keys.feed(PASTE_START);
        let chunk = vec![b'x'; 1 << 20];
        for _ in 0..6 {
            assert!(keys.feed(&chunk).is_empty());
        }
        let found = keys.feed(PASTE_END);
        assert_eq!(found, [Key::Paste("x".repeat(LONGEST_PASTE))]);
    }

    #[test]
    fn control_keys_are_told_apart() {
        assert_eq!(
            all(&[b"\x03\x04\x15\x7f\x1b[I"]),
            [
                Key::Interrupt,
                Key::EndOfInput,
                Key::ClearLine,
                Key::Backspace,
                Key::Other
            ]
        );
    }
}
