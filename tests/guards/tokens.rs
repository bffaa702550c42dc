//! Rust source as a flat list of tokens: enough to read paths, modules and attributes.

/// One token; comments are left out, so nothing that is only spoken about is taken for code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Ident(String),
    Text(String),
    Mark(char),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) line: usize,
}

impl Token {
    pub(crate) fn is(&self, mark: char) -> bool {
        self.kind == Kind::Mark(mark)
    }

    pub(crate) fn ident(&self) -> Option<&str> {
        match &self.kind {
            Kind::Ident(name) => Some(name),
            Kind::Text(_) | Kind::Mark(_) => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(text) => Some(text),
            Kind::Ident(_) | Kind::Mark(_) => None,
        }
    }
}

struct Reader {
    chars: Vec<char>,
    at: usize,
    line: usize,
}

impl Reader {
    fn peek(&self, ahead: usize) -> char {
        self.chars.get(self.at + ahead).copied().unwrap_or('\0')
    }

    fn take(&mut self) -> char {
        let char = self.peek(0);
        self.at += 1;
        if char == '\n' {
            self.line += 1;
        }
        char
    }

    fn done(&self) -> bool {
        self.at >= self.chars.len()
    }

    fn block_comment(&mut self) {
        let mut depth = 0;
        while !self.done() {
            match (self.take(), self.peek(0)) {
                ('/', '*') => {
                    self.take();
                    depth += 1;
                }
                ('*', '/') => {
                    self.take();
                    depth -= 1;
                    if depth == 0 {
                        return;
                    }
                }
                _ => {}
            }
        }
    }

    fn string(&mut self) -> String {
        let mut text = String::new();
        self.take();
        while !self.done() {
            match self.take() {
                '"' => break,
                '\\' => text.push(self.take()),
                other => text.push(other),
            }
        }
        text
    }

    fn raw_string(&mut self) -> String {
        let mut hashes = 0;
        while self.peek(0) == '#' {
            self.take();
            hashes += 1;
        }
        self.take();
        let mut text = String::new();
        while !self.done() {
            let ends = self.peek(0) == '"' && (1..=hashes).all(|n| self.peek(n) == '#');
            if ends {
                for _ in 0..=hashes {
                    self.take();
                }
                break;
            }
            text.push(self.take());
        }
        text
    }

    fn word(&mut self) -> String {
        let mut word = String::new();
        while self.peek(0).is_alphanumeric() || self.peek(0) == '_' {
            word.push(self.take());
        }
        word
    }

    /// Takes `'a'` and `'\n'` whole; of a lifetime only the quote.
    fn quote(&mut self) {
        let escaped = self.peek(1) == '\\';
        if escaped || self.peek(2) == '\'' {
            self.take();
            while !self.done() {
                match self.take() {
                    '\\' => {
                        self.take();
                    }
                    '\'' => break,
                    _ => {}
                }
            }
        } else {
            self.take();
        }
    }
}

/// Reads a source file.
pub(crate) fn tokens(source: &str) -> Vec<Token> {
    let mut from = Reader {
        chars: source.chars().collect(),
        at: 0,
        line: 1,
    };
    let mut found = Vec::new();
    while !from.done() {
        let line = from.line;
        let next = from.peek(0);
        let kind = match (next, from.peek(1)) {
            ('/', '/') => {
                while !from.done() && from.peek(0) != '\n' {
                    from.take();
                }
                continue;
            }
            ('/', '*') => {
                from.block_comment();
                continue;
            }
            ('"', _) => Kind::Text(from.string()),
            ('\'', _) => {
                from.quote();
                continue;
            }
            _ if next.is_whitespace() => {
                from.take();
                continue;
            }
            _ if next.is_alphanumeric() || next == '_' => {
                let word = from.word();
                let raw = matches!(word.as_str(), "r" | "br" | "cr");
                match from.peek(0) {
                    '"' if raw => Kind::Text(from.raw_string()),
                    '#' if raw && matches!(from.peek(1), '#' | '"') => {
                        Kind::Text(from.raw_string())
                    }
                    '"' if matches!(word.as_str(), "b" | "c") => Kind::Text(from.string()),
                    _ => Kind::Ident(word),
                }
            }
            _ => Kind::Mark(from.take()),
        };
        found.push(Token { kind, line });
    }
    found
}

/// Tells whether `::` stands at `at`.
pub(crate) fn path_separator(tokens: &[Token], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.is(':'))
        && tokens.get(at + 1).is_some_and(|token| token.is(':'))
}

/// Returns the attributes that stand directly before the item whose keyword is at `at`.
pub(crate) fn attributes(tokens: &[Token], at: usize) -> Vec<&[Token]> {
    let mut found = Vec::new();
    let mut end = at;
    // The visibility stands between the attributes and the keyword.
    while end > 0
        && (matches!(
            tokens[end - 1].ident(),
            Some("pub" | "crate" | "super" | "in" | "async" | "const")
        ) || tokens[end - 1].is('(')
            || tokens[end - 1].is(')'))
    {
        end -= 1;
    }
    while end > 0 && tokens[end - 1].is(']') {
        let mut depth = 0;
        let mut start = end - 1;
        loop {
            if tokens[start].is(']') {
                depth += 1;
            } else if tokens[start].is('[') {
                depth -= 1;
            }
            if depth == 0 || start == 0 {
                break;
            }
            start -= 1;
        }
        found.push(&tokens[start..end]);
        end = start.saturating_sub(1);
    }
    found
}

/// Tells whether one of the attributes is exactly `#[cfg(test)]`.
pub(crate) fn only_for_tests(attributes: &[&[Token]]) -> bool {
    attributes.iter().any(|attribute| {
        let words: Vec<_> = attribute.iter().filter_map(Token::ident).collect();
        words == ["cfg", "test"]
    })
}

#[test]
fn comments_strings_and_lifetimes_are_no_code() {
    let source = "// use crate::a;\n/* /* x */ crate::b */ let s = \"crate::c\"; r#\"crate::\"d\"#; fn f<'a>(c: char) { 'x'; '\\''; crate::e }";
    let words: Vec<_> = tokens(source)
        .iter()
        .filter_map(|token| token.ident().map(str::to_owned))
        .collect();
    assert_eq!(
        words,
        ["let", "s", "fn", "f", "a", "c", "char", "crate", "e"]
    );
}
