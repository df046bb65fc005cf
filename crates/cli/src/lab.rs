//! `dnslab lab`: servers of other releases, fetched into the cache and listed.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::anyhow;
use dnslab_lab::cache::{self, Entry};
use dnslab_lab::get::{GetError, Recipe, Request, get};
use dnslab_record::visible;
use indicatif::{ProgressBar, ProgressStyle};

use crate::arguments::Output;
use crate::arguments::lab::{Get, Lab, LabCommand};
use crate::exit::{Exit, Failure};
use crate::session::guard;
use crate::{signals, terminal};

/// Interval of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// Time between two lines of progress where there is no terminal.
const LINES: Duration = Duration::from_secs(5);

pub(crate) fn lab(arguments: &Lab) -> Result<Exit, Failure> {
    match &arguments.command {
        LabCommand::Get(arguments) => get_all(arguments),
        LabCommand::List => list(),
    }
}

/// Fetches one after another, up to the first failure.
fn get_all(arguments: &Get) -> Result<Exit, Failure> {
    let recipes: Vec<&'static Recipe> =
        arguments.name.iter().map(|name| recipe(name)).collect::<Result<_, _>>()?;
    let cache = cache_folder()?;
    let (guard, stop) = (guard(), signals::stop_flag()?);
    for recipe in recipes {
        let request = Request {
            recipe,
            cache: &cache,
            mirror: arguments.mirror.as_deref(),
            guard: &guard,
            stop: &stop,
        };
        match get_one(&request) {
            Ok(entry) => say!("{}", described(&entry)),
            Err(error @ GetError::Interrupted { .. }) => {
                return Err(Failure { exit: Exit::Interrupted, error: error.into() });
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Exit::Fine)
}

fn recipe(name: &str) -> Result<&'static Recipe, Failure> {
    Recipe::find(name).ok_or_else(|| {
        let names: Vec<&str> = Recipe::all().map(Recipe::name).collect();
        Failure::bad_input(anyhow!(
            "`{name}` is nothing that dnslab can get\n  hint:    there are {}",
            names.join(", ")
        ))
    })
}

fn cache_folder() -> Result<PathBuf, Failure> {
    let missing = || anyhow!("there is no place for a cache\n  hint:    set DNSLAB_CACHE or HOME");
    Ok(cache::folder().ok_or_else(missing)?)
}

fn get_one(request: &Request<'_>) -> Result<Entry, GetError> {
    let bar = terminal::bar(ProgressBar::new_spinner(), Output::default());
    let style = ProgressStyle::with_template("{spinner} {prefix} {elapsed}  {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner());
    bar.set_style(style);
    bar.set_prefix(request.recipe.name());
    bar.enable_steady_tick(TICK);
    let (began, mut last_line) = (Instant::now(), None);
    let done = get(request, &mut |what| {
        bar.set_message(what.to_owned());
        let is_due = last_line.is_none_or(|instant: Instant| instant.elapsed() >= LINES);
        if bar.is_hidden() && is_due {
            let seconds = began.elapsed().as_secs();
            tell!("{}, {seconds} s: {}", request.recipe.name(), visible(what));
            last_line = Some(Instant::now());
        }
    });
    bar.finish_and_clear();
    done
}

fn described(entry: &Entry) -> String {
    format!("{}: version {}, {}", entry.name, entry.facts.version, entry.path.display())
}

fn list() -> Result<Exit, Failure> {
    let cache = cache_folder()?;
    let entries = cache::entries(&cache);
    let header = ["server", "size", "version", "from"].map(str::to_owned);
    let mut rows: Vec<Vec<String>> = Recipe::all()
        .map(|recipe| {
            let entry = entries.iter().find(|entry| entry.name == recipe.name());
            row(recipe.name(), entry, recipe.origin())
        })
        .collect();
    // Left by a version of dnslab with other recipes, and still usable.
    let others = entries.iter().filter(|entry| Recipe::find(&entry.name).is_none());
    rows.extend(others.map(|entry| row(&entry.name, Some(entry), entry.facts.source.clone())));
    say!("{}", terminal::table(&header, &rows));
    say!("\nin the cache {}: {} of them", cache.display(), entries.len());
    say!("`dnslab lab get NAME` fetches one; `server.root = \"NAME\"` uses it");
    Ok(Exit::Fine)
}

fn row(name: &str, entry: Option<&Entry>, from: String) -> Vec<String> {
    let (size, version) = match entry {
        Some(entry) => (mebibytes(entry.facts.octets), entry.facts.version.clone()),
        None => ("-".to_owned(), "not there".to_owned()),
    };
    vec![name.to_owned(), size, version, from]
}

fn mebibytes(octets: u64) -> String {
    format!("{} MiB", octets.div_ceil(1 << 20))
}
