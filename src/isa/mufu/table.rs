//! The table rows, parsed when the crate is compiled.
//!
//! A malformed data file stops the build, so the tables need no error at run
//! time and no lazy global.

/// One row: the quadratic of one segment.
#[derive(Clone, Copy)]
pub(super) struct Row {
    /// Constant term, in units of `2^s0`.
    pub(super) c0: i64,
    /// Factor of the argument within the segment.
    pub(super) c1: i64,
    /// Factor of its truncated square.
    pub(super) c2: i64,
}

/// Columns of a data row: `segment,c0,c1,c2,k_low,k_high`.
const COLUMNS: usize = 6;

/// Parses a file of `profiles/mufu/`: comment lines (`#`), one header line, then
/// `N` rows in order of their segment.
pub(super) const fn parse<const N: usize>(text: &str) -> [Row; N] {
    let bytes = text.as_bytes();
    let mut at = 0;
    while bytes[at] == b'#' {
        at = next_line(bytes, at);
    }
    at = next_line(bytes, at); // the header
    let mut rows = [Row { c0: 0, c1: 0, c2: 0 }; N];
    let mut segment = 0;
    while segment < N {
        let mut fields = [0; COLUMNS];
        let mut column = 0;
        while column < COLUMNS {
            (fields[column], at) = integer(bytes, at);
            let separator = if column == COLUMNS - 1 { b'\n' } else { b',' };
            assert!(bytes[at] == separator, "a row needs six integers");
            at += 1;
            column += 1;
        }
        assert!(fields[0] == segment as i64, "rows must be in order of their segment");
        rows[segment] = Row { c0: fields[1], c1: fields[2], c2: fields[3] };
        segment += 1;
    }
    assert!(at == bytes.len(), "more rows than segments");
    rows
}

/// Returns the position after the next line feed.
const fn next_line(bytes: &[u8], mut at: usize) -> usize {
    while bytes[at] != b'\n' {
        at += 1;
    }
    at + 1
}

/// Reads a decimal integer; returns it and the position after it.
const fn integer(bytes: &[u8], mut at: usize) -> (i64, usize) {
    let negative = bytes[at] == b'-';
    if negative {
        at += 1;
    }
    let first = at;
    let mut value = 0;
    while bytes[at].is_ascii_digit() {
        value = 10 * value + (bytes[at] - b'0') as i64;
        at += 1;
    }
    assert!(at > first, "a column holds no digits");
    (if negative { -value } else { value }, at)
}
