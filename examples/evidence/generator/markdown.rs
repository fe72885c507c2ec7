//! Tables of a page, and the marks around them.

/// A table. Cells are text of the page: a bar in one would end it, so it is escaped.
pub(crate) fn table(head: &[&str], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| {
        let cells: Vec<String> = cells.iter().map(|cell| cell.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let head_cells: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
    let rule = format!("|{}\n", "---|".repeat(head.len()));
    let body: String = rows.iter().map(|row| line(row)).collect();
    line(&head_cells) + &rule + &body
}

/// A count with a comma every three digits.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Replaces what is between `<!-- generated: mark -->` and `<!-- /generated: mark -->`.
pub(crate) fn replaced(text: &str, mark: &str, content: &str) -> Result<String, String> {
    let (start, end) =
        (format!("<!-- generated: {mark} -->\n"), format!("<!-- /generated: {mark} -->"));
    let (before, rest) = text.split_once(&start).ok_or_else(|| format!("no mark {mark}"))?;
    let (_, after) = rest.split_once(&end).ok_or_else(|| format!("no end of {mark}"))?;
    Ok(format!("{before}{start}{content}{end}{after}"))
}
