//! `attest catalog show`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::Args as ClapArgs;
use serde_json::{Value, json};

use super::open;
use crate::cli::output::{Output, plain};
use crate::cli::{CommandResult, Exit};
use crate::recipe::catalog::families::Family;
use crate::recipe::catalog::listing::{Listing, Shape};
use crate::recipe::catalog::{Catalog, Choice};

/// Arguments of `attest catalog show`.
#[derive(ClapArgs, Debug)]
pub(super) struct Args {
    /// Id or file of a catalogue [default: a line on each].
    catalogue: Option<String>,
    /// Print who computes the products with this many rows.
    #[arg(long, value_name = "M", requires = "catalogue", value_parser = clap::value_parser!(u32).range(1..))]
    m: Option<u32>,
}

/// Prints what a catalogue lists, or which catalogues there are.
pub(super) fn run(args: &Args, output: &Output) -> CommandResult {
    let (json, text) = match &args.catalogue {
        None => every(),
        Some(named) => one(&open(named)?, args.m.map(u64::from)),
    };
    output.result(&json, &text);
    Ok(Exit::Success)
}

fn every() -> (Value, String) {
    let (mut rows, mut text) = (Vec::new(), String::new());
    for catalog in Catalog::ids().filter_map(|id| Catalog::by_id(id).ok()) {
        let (json, line) = summary(&catalog);
        let _ = writeln!(text, "{line}"); // Writing to a String cannot fail.
        rows.push(json);
    }
    (Value::from(rows), text)
}

/// A line on a catalogue.
fn summary(catalog: &Catalog) -> (Value, String) {
    let id = catalog.id();
    let what = match catalog.listing() {
        None => "families of algorithms".to_owned(),
        Some(listing) => {
            let totals = Totals::of(listing.shapes.iter());
            format!(
                "{} weights, m to {}, {} algorithms, {} values compared, {} differ",
                listing.shapes.len(),
                listing.max_m,
                totals.algorithms,
                totals.compared,
                totals.differing
            )
        }
    };
    let json = json!({
        "id": id, "digest": catalog.digest().to_string(), "profile": catalog.profile(),
        "cublaslt": catalog.versions(), "what": what,
    });
    (json, format!("{}  {what}", plain(id)))
}

#[derive(Default)]
struct Totals {
    algorithms: usize,
    /// Wider than a file's counts, so that no sum of them overflows.
    compared: u128,
    differing: u128,
}

impl Totals {
    fn of<'a>(shapes: impl Iterator<Item = &'a Shape>) -> Self {
        let mut totals = Self::default();
        for algorithm in shapes.flat_map(|shape| &shape.algorithms) {
            let compared = &algorithm.compared;
            totals.algorithms += 1;
            let counts = [compared.outputs, compared.accumulators, compared.repeated];
            totals.compared += counts.into_iter().map(u128::from).sum::<u128>();
            totals.differing += u128::from(compared.differing);
        }
        totals
    }
}

fn one(catalog: &Catalog, m: Option<u64>) -> (Value, String) {
    let (mut json, line) = summary(catalog);
    let mut text = format!(
        "{line}\nprofile {}, cuBLASLt {:?}, digest {}\n{}\n",
        plain(catalog.profile()),
        catalog.versions(),
        catalog.digest(),
        plain(catalog.product())
    );
    match catalog.listing() {
        Some(listing) => {
            let (rows, table) = match m {
                None => shapes(listing),
                Some(m) => products(listing, m),
            };
            json["shapes"] = rows;
            text.push_str(&table);
        }
        None => {
            let (rows, table) = families(catalog.families());
            json["families"] = rows;
            text.push_str(&table);
        }
    }
    (json, text)
}

/// A row for each family, and what was compared of it.
fn families(families: &[Family]) -> (Value, String) {
    let (mut rows, mut text) = (Vec::new(), String::new());
    for family in families {
        let Family { id, max_split_k, reduction_scheme, max_m, max_n, max_k, evidence, .. } =
            family;
        let recipe = family.recipe.recipe().to_string();
        let _ = writeln!(
            text,
            "\nalgorithm {id}, up to {max_split_k} slice(s), reduction scheme {reduction_scheme}: {recipe}\n\
             measured up to m={max_m} n={max_n} k={max_k}\n{evidence}"
        );
        rows.push(json!({
            "id": id, "max_split_k": max_split_k, "reduction_scheme": reduction_scheme,
            "recipe": recipe, "max_m": max_m, "max_n": max_n, "max_k": max_k, "evidence": evidence,
        }));
    }
    (Value::from(rows), text)
}

/// A row for each weight and choice.
fn shapes(listing: &Listing) -> (Value, String) {
    let (mut rows, mut text) = (Vec::new(), String::new());
    let _ = writeln!(
        text,
        "\n{:>7} {:>6}  {:<18} {:<8} {:>6} {:>6}  of them, by recipe",
        "n", "k", "weights", "choice", "runs", "m's"
    );
    for shape in &listing.shapes {
        for choice in Choice::ALL {
            let runs = shape.runs(choice);
            let mut by_recipe: BTreeMap<&str, u64> = BTreeMap::new();
            for run in runs {
                let recipe = shape.algorithms[run.2].recipe.as_str();
                *by_recipe.entry(recipe).or_default() += run.1 - run.0 + 1;
            }
            let count: u64 = by_recipe.values().sum();
            let recipes: Vec<String> =
                by_recipe.iter().map(|(recipe, count)| format!("{recipe} {count}")).collect();
            let (n, k, name) = (shape.n, shape.k, choice.name());
            let _ = writeln!(
                text,
                "{n:>7} {k:>6}  {:<18} {name:<8} {:>6} {count:>6}  {}",
                shape.weights.join(", "),
                runs.len(),
                recipes.join(", ")
            );
            rows.push(json!({
                "n": n, "k": k, "weights": shape.weights, "choice": name, "runs": runs.len(),
                "listed": count, "recipes": by_recipe,
            }));
        }
    }
    (Value::from(rows), text)
}

/// Who computes the products with `m` rows.
fn products(listing: &Listing, m: u64) -> (Value, String) {
    let (mut rows, mut text) = (Vec::new(), String::new());
    let _ = writeln!(
        text,
        "\n{:>7} {:>6}  {:<8} with m={m} (listed up to m={})",
        "n", "k", "choice", listing.max_m
    );
    for shape in &listing.shapes {
        for choice in Choice::ALL {
            let algorithm = shape.algorithm(choice, m);
            let (n, k, name) = (shape.n, shape.k, choice.name());
            let (recipe, attributes) = match algorithm {
                None => ("not listed", String::new()),
                Some(a) => (a.recipe.as_str(), a.attributes.to_string()),
            };
            let line = format!("{n:>7} {k:>6}  {name:<8} {recipe}  {attributes}");
            let _ = writeln!(text, "{}", line.trim_end());
            rows.push(json!({
                "n": n, "k": k, "m": m, "choice": name,
                "algorithm": algorithm.map(|a| &a.attributes),
                "recipe": algorithm.map(|a| &a.recipe),
                "compared": algorithm.map(|a| &a.compared),
            }));
        }
    }
    (Value::from(rows), text)
}
