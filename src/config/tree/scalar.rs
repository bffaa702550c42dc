//! What a plain word means: nothing, a truth value, a number or a text.

use std::num::IntErrorKind;

use super::Kind;

/// Reads a plain scalar by the core schema of YAML 1.2.
pub(super) fn resolve(text: String) -> Kind {
    match text.as_str() {
        "" | "~" | "null" | "Null" | "NULL" => Kind::Null,
        "true" | "True" | "TRUE" => Kind::Bool(true),
        "false" | "False" | "FALSE" => Kind::Bool(false),
        other => number(other).map_or(Kind::Text(text), Kind::Number),
    }
}

fn number(text: &str) -> Option<serde_json::Number> {
    if let Some(digits) = text.strip_prefix("0x") {
        return plain_digits(digits, 16);
    }
    if let Some(digits) = text.strip_prefix("0o") {
        return plain_digits(digits, 8);
    }
    let body = text.strip_prefix(['-', '+']).unwrap_or(text);
    if !body.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        return None;
    }
    // 007 is a number to one reader and a text to the next: it stays a text.
    if body.len() > 1 && body.starts_with('0') && body.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    match text.parse::<i64>() {
        Ok(whole) => return Some(whole.into()),
        Err(error) if *error.kind() == IntErrorKind::InvalidDigit => {}
        Err(_) => {
            if let Ok(whole) = text.parse::<u64>() {
                return Some(whole.into());
            }
        }
    }
    let has_digit = body.bytes().any(|b| b.is_ascii_digit());
    let float_shape = body
        .bytes()
        .all(|b| b.is_ascii_digit() || b".eE+-".contains(&b));
    if has_digit && float_shape {
        text.parse::<f64>()
            .ok()
            .and_then(serde_json::Number::from_f64)
    } else {
        None
    }
}

fn plain_digits(digits: &str, radix: u32) -> Option<serde_json::Number> {
    if digits.starts_with(['+', '-']) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok().map(Into::into)
}
