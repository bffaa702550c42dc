//! Running a child to its end, with a deadline and capped output.
