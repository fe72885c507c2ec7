//! What the page shows, gathered for `templates/report.html`. The template escapes
//! every text; nothing here makes markup.

use askama::Template;

use super::coverage::{self, Cell, Row};
use super::difference::{self, Shown};
use super::document::Document;
use super::plot::{self, Choice, Entry, Plot};
use super::words;
use crate::cli::output::plain;
use crate::num::{Digest, sha256};
use crate::transcript::Transcript;
use crate::transcript::key::PublicKey;
use crate::transcript::statement::Statement;
use crate::verify::report::{Check, Outcome, Subject};
use crate::verify::trust::rfc3339;

/// What a page is made from.
pub(super) struct Source<'a> {
    /// The report.
    pub(super) document: &'a Document,
    /// SHA-256 of the report's file.
    pub(super) report_sha256: Digest,
    /// The transcript, if the file is one.
    pub(super) transcript: Option<&'a Transcript>,
    /// SHA-256 of the transcript's file.
    pub(super) file_sha256: Digest,
    /// The text of token ids, if a tokenizer was given.
    pub(super) token_text: &'a dyn Fn(u32) -> Option<String>,
    /// Whose signature lies beside the report, and in which file.
    pub(super) auditor: Option<(PublicKey, String)>,
    /// When the page is made (seconds since 1970-01-01T00:00:00Z).
    pub(super) at: u64,
}

/// A row of a list: name and value.
struct Pair {
    name: String,
    value: String,
}

/// A check as the page shows it.
struct Line {
    name: &'static str,
    question: &'static str,
    class: &'static str,
    mark: &'static str,
    detail: String,
}

/// The coverage map with its places.
struct Map {
    rows: Vec<MapRow>,
    height: usize,
    /// Where one pass ends and another begins, if they are few.
    cuts: Vec<usize>,
    first: String,
    last: String,
    legend: Vec<(&'static str, &'static str)>,
}

struct MapRow {
    y: usize,
    height: usize,
    label: Option<String>,
    title: String,
    cells: Vec<MapCell>,
}

struct MapCell {
    x: usize,
    width: usize,
    class: &'static str,
}

/// A token of the table of choices.
struct ChoiceRow {
    number: usize,
    chosen: String,
    chosen_logit: String,
    runner_up: String,
    runner_up_logit: String,
    class: &'static str,
}

struct PlotView {
    plot: Plot,
    titles: Vec<(String, String)>,
    rows: Vec<ChoiceRow>,
    all: bool,
}

impl PlotView {
    /// What a dot says of itself.
    fn title(&self, index: &usize, chosen: &bool) -> &str {
        self.titles.get(*index).map_or("", |pair| if *chosen { &pair.0 } else { &pair.1 })
    }
}

/// The page.
#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    word: &'static str,
    class: String,
    meaning: &'static str,
    advice: &'static str,
    subject: String,
    identities: Vec<Pair>,
    prompt: Option<String>,
    output: Option<String>,
    checks: Vec<Line>,
    open: Vec<Line>,
    trace: Option<&'static str>,
    map: Option<Map>,
    /// Whether the logits are what was computed.
    confirmed: bool,
    plot: Option<PlotView>,
    no_plot: &'static str,
    finding: Option<Shown>,
    claims: Vec<Pair>,
    tools: Vec<Pair>,
    checked_at: String,
    made_at: String,
    auditor: Option<Vec<Pair>>,
    report_sha256: String,
}

/// Makes the page.
///
/// # Errors
/// The template engine's sentence; there is no input that is known to cause one.
pub(super) fn render(source: &Source<'_>) -> Result<String, String> {
    let document = source.document;
    let statement = source.transcript.map(Transcript::statement);
    let (meaning, advice) = words::verdict(document.verdict);
    let choices = source.transcript.and_then(plot::choices);
    let page = Page {
        word: document.verdict.word(),
        class: document.verdict.word().to_lowercase(),
        meaning,
        advice,
        subject: statement.map_or("not a transcript".into(), |s| plain(&s.model.name).into_owned()),
        identities: identities(source),
        prompt: statement.map(|s| prompt(&s.prompt)),
        output: document.text.as_deref().map(lines),
        checks: document.checks.iter().map(line).collect(),
        open: document.checks.iter().map(line).filter(Line::is_open).collect(),
        trace: statement.map(|s| words::trace(s.trace.mode)),
        map: source.transcript.and_then(|transcript| map(document, transcript)),
        confirmed: matches!(document.outcome(Subject::Execution), Some(Outcome::Passed { .. })),
        no_plot: if choices.is_some() { NO_NUMBERS } else { NO_ROWS },
        plot: choices.and_then(|choices| plot_view(source, choices)),
        finding: document.finding().map(difference::shown),
        claims: document.claims.iter().map(|c| pair(&c.field, &c.value)).collect(),
        tools: tools(document, statement),
        checked_at: plain(&document.verifier.checked_at).into_owned(),
        made_at: rfc3339(source.at),
        auditor: source.auditor.as_ref().map(|(key, file)| {
            vec![
                pair("key id", &key.id().to_string()),
                pair("public key", &key.to_hex()),
                pair("signature file", file),
            ]
        }),
        report_sha256: source.report_sha256.to_string(),
    };
    page.render().map_err(|error| error.to_string())
}

fn pair(name: &str, value: &str) -> Pair {
    Pair { name: plain(name).into_owned(), value: plain(value).into_owned() }
}

fn identities(source: &Source<'_>) -> Vec<Pair> {
    let mut pairs =
        vec![pair("file that this page was made with, SHA-256", &source.file_sha256.to_string())];
    let Some(transcript) = source.transcript else { return pairs };
    let statement = transcript.statement();
    let tokens: Vec<u8> = statement.tokens_out.iter().flat_map(|id| id.to_le_bytes()).collect();
    pairs.insert(0, pair("transcript (statement, SHA-256)", &transcript.digest().to_string()));
    pairs.push(pair("signer's key id, as the file names it", &transcript.key_id().to_string()));
    pairs.push(pair("model, as the signer calls it", &statement.model.name));
    pairs.push(pair("model's manifest digest", &statement.model.digest.to_string()));
    let (bytes, ids) = (statement.prompt.len(), statement.tokens_in.len());
    let digest = sha256(&[&statement.prompt]);
    pairs.push(pair("prompt, SHA-256", &format!("{digest} ({bytes} bytes, {ids} tokens)")));
    let (digest, ids) = (sha256(&[&tokens]), statement.tokens_out.len());
    pairs.push(pair(
        "output, SHA-256 of the token ids as 32-bit little-endian",
        &format!("{digest} ({ids} tokens, ends by {})", statement.finish.word()),
    ));
    if let Some(text) = &source.document.text {
        pairs.push(pair("output's text, SHA-256", &sha256(&[text.as_bytes()]).to_string()));
    }
    let artifact = |a: &crate::transcript::statement::Artifact| format!("{}, {}", a.id, a.digest);
    pairs.push(pair("GPU profile", &artifact(&statement.profile)));
    pairs.push(pair("dispatch catalogue", &artifact(&statement.catalogue)));
    let stack = format!("{}, numerics {}", statement.stack, statement.numerics);
    pairs.push(pair("stack", &stack));
    pairs.push(pair("claimed time", &rfc3339(statement.claimed_time)));
    if let Some(nonce) = &statement.nonce {
        pairs.push(pair("nonce", &hex::encode(nonce)));
    }
    if let Some(draw) = &source.document.draw {
        let nonce = hex::encode(&draw.nonce);
        pairs.push(pair("challenge", &format!("{} cells drawn from {nonce}", draw.cells)));
    }
    pairs
}

/// Who verified, and the tables that the verdict rests on.
fn tools(document: &Document, statement: Option<&Statement>) -> Vec<Pair> {
    let by = &document.verifier;
    let mut pairs = vec![
        pair(
            "verified by",
            &format!("attest {}, numerics {}, {}", by.version, by.numerics, by.simd),
        ),
        pair("page made by", concat!("attest ", env!("CARGO_PKG_VERSION"))),
        pair("the verifier's profile", &format!("{}, {}", by.profile.id, by.profile.digest)),
        pair("its general catalogue", &format!("{}, {}", by.catalogue.id, by.catalogue.digest)),
    ];
    pairs.push(match (&by.trust_file, &by.trust_file_sha256) {
        (Some(file), Some(digest)) => pair("trust file", &format!("{file}, {digest}")),
        (Some(file), None) => pair("trust file", file),
        (None, _) => pair("trust file", "none"),
    });
    let gpu = statement.and_then(|statement| statement.environment.gpu.as_ref());
    for kernel in gpu.iter().flat_map(|gpu| &gpu.kernels) {
        pairs.push(pair(&format!("kernel {}", kernel.name), &kernel.sha256.to_string()));
    }
    pairs
}

impl Line {
    /// Whether something was left out.
    fn is_open(&self) -> bool {
        ["open", "partial"].contains(&self.class)
    }
}

fn line(check: &Check) -> Line {
    let (name, question) = words::subject(check.subject);
    let (class, mark, detail) = match &check.outcome {
        Outcome::Passed { detail } => ("passed", "passed", detail),
        Outcome::Partial { detail } => ("partial", "in part", detail),
        Outcome::Failed { detail, .. } => ("failed", "FAILED", detail),
        Outcome::NotAsked { reason } => ("open", "not asked", reason),
        Outcome::NotDecided { reason } => ("open", "not decided", reason),
    };
    Line { name, question, class, mark, detail: plain(detail).into_owned() }
}

/// A prompt as text, or its bytes in hex where they are none.
fn prompt(bytes: &[u8]) -> String {
    match str::from_utf8(bytes) {
        Ok(text) => lines(text),
        Err(_) => format!("not text; in hex: {}", hex::encode(bytes)),
    }
}

fn lines(text: &str) -> String {
    crate::cli::output::plain_lines(text)
}

/// The map of what was checked: by pass, or by position where cells were drawn.
fn map(document: &Document, transcript: &Transcript) -> Option<Map> {
    let statement = transcript.statement();
    let passes = statement.passes.len();
    match &document.draw {
        None => {
            let first = format!("pass 0: prompt of {} tokens", statement.tokens_in.len());
            Some(drawing(coverage::rows(document, statement)?, passes, ("pass", &first)))
        }
        Some(draw) => {
            let rows = coverage::rows_of_draw(document, transcript, draw)?;
            let positions = rows.first()?.runs.iter().map(|run| run.count).sum();
            Some(drawing(rows, positions, ("position", "position 0")))
        }
    }
}

fn drawing(rows: Vec<Row>, columns: usize, (column, first): (&str, &str)) -> Map {
    let passes = columns.max(1);
    let (step, every) = if rows.len() <= 14 { (14, 1) } else { (8, rows.len().div_ceil(12)) };
    let place = |pass: usize| MAP_LEFT + pass * MAP_WIDTH / passes;
    let last = rows.len() - 1;
    // Among narrow rows a label takes the height of two, and keeps off the ends.
    let labelled = |index: usize| {
        let between = index > 2 && index + 2 < last && (index - 1).is_multiple_of(every);
        every == 1 || index == 0 || index == last || between
    };
    let kinds = LEGEND
        .into_iter()
        .filter(|(kind, _)| rows.iter().flat_map(|row| &row.runs).any(|run| run.cell == *kind));
    let legend = kinds.map(|(kind, words)| (kind.class(), words)).collect();
    let drawn = |(index, row): (usize, Row)| MapRow {
        y: index * step,
        height: step - 1,
        label: labelled(index).then(|| row.name.clone()),
        title: row.name,
        cells: row
            .runs
            .iter()
            .map(|run| {
                let (x, end) = (place(run.start), place(run.start + run.count));
                // The place of a difference is seen among a thousand passes, too.
                let least = if run.cell == Cell::Differs { 6 } else { 1 };
                MapCell { x, width: (end - x).max(least), class: run.cell.class() }
            })
            .collect(),
    };
    Map {
        height: rows.len() * step,
        cuts: if passes <= MOST_CUTS { (1..passes).map(place).collect() } else { Vec::new() },
        first: first.to_owned(),
        last: format!("{column} {}", columns.saturating_sub(1)),
        rows: rows.into_iter().enumerate().map(drawn).collect(),
        legend,
    }
}

fn plot_view(source: &Source<'_>, choices: Vec<Choice>) -> Option<PlotView> {
    let plot = Plot::of(&choices)?;
    let name = |entry: &Entry| match (source.token_text)(entry.id) {
        Some(text) => format!("{} {text:?}", entry.id),
        None => entry.id.to_string(),
    };
    let title = |choice: &Choice| {
        let say = |what: &str, entry: &Entry| {
            format!("token {}, {what}: {}, logit {}", choice.index, name(entry), entry.value())
        };
        (say("chosen", &choice.chosen), say("runner-up", &choice.runner_up))
    };
    let titles = choices.iter().map(title).collect();
    let all = choices.len() <= TABLE_ROWS;
    let mut shown: Vec<&Choice> = choices.iter().collect();
    if !all {
        shown.sort_by_key(|choice| (choice.lead(), choice.index));
        shown.truncate(TABLE_ROWS);
    }
    let row = |choice: &&Choice| ChoiceRow {
        number: choice.index,
        chosen: plain(&name(&choice.chosen)).into_owned(),
        chosen_logit: choice.chosen.value(),
        runner_up: plain(&name(&choice.runner_up)).into_owned(),
        runner_up_logit: choice.runner_up.value(),
        class: if choice.lead().is_some_and(|lead| lead < 0) { "failed" } else { "" },
    };
    let rows = shown.iter().map(row).collect();
    Some(PlotView { plot, titles, rows, all })
}

/// Where the cells of the map begin, and their width together, in its units.
const MAP_LEFT: usize = 72;
const MAP_WIDTH: usize = 340;

/// Most passes that are drawn apart.
const MOST_CUTS: usize = 128;

/// Most rows of the table of choices.
const TABLE_ROWS: usize = 12;

const NO_ROWS: &str = "The file has no rows of logits: it withholds them or has their digests, or it is no transcript. They cannot be drawn.";
const NO_NUMBERS: &str = "A logit of a generated token is not a finite number; nothing is drawn.";

/// What the fills of the map mean.
const LEGEND: [(Cell, &str); 5] = [
    (Cell::Compared, "recorded, computed again, equal"),
    (Cell::Computed, "computed again, not recorded"),
    (Cell::Partly, "compared up to the first difference"),
    (Cell::Differs, "differs"),
    (Cell::Open, "not checked"),
];
