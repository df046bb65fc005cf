//! The keys as a document for people.

use std::fmt::Write as _;

use crate::experiment::keys;
use crate::keys::VARIANT_NAME;
use crate::{DefaultValue, HOST_KEYS, Key, PUBLISHED_KEYS};

const INTRODUCTION: &str = "\
<!-- Generated from the keys in crates/settings/src/keys.rs. To write it anew:
     DNSLAB_BLESS=1 cargo test -p dnslab-settings -->

# The experiment file

An experiment is a TOML file: what holds for every case at the top, and one `[[variant]]` for each
case. A variant overrides any key but those of the experiment as a whole. `experiments/encryption.toml`
is one to begin with, and [experiment.schema.json](experiment.schema.json) tells an editor the
keys.

```toml
name = \"clients\"
question = \"What do more clients cost?\"

[load]
outstanding = 10
duration = \"30s\"

[[variant]]
name = \"few\"
load.clients = 4

[[variant]]
name = \"many\"
load.clients = 400
```

An experiment file can name programs, hosts that your ssh keys open, text of configurations and a folder that is written to (`binary`, `root`,
`server.host`, `extra`, `server.log.folder` and others), so it is code: run only what you trust. `dnslab plan` shows what would run and runs none of it. A file that names such things and that
another user owns, or may write, is run only after a question at the terminal, or with `--trust`; so is every results
directory that is resumed, since servers run in it. Built-in experiments and values of `--set` are your own,
and with `sudo` so are the files of who called it. In a container your files may be those of a user whom it does not
know: `--trust` says that they are yours.

## How values are written

| what | how |
| --- | --- |
| count | `4`, `200_000` |
| duration | a number and a unit in quotes: `\"50us\"`, `\"1.5ms\"`, `\"10s\"`, `\"2m\"`; the units are `ns`, `us`, `ms`, `s`, `m`, `h` |
| share | `\"0.1%\"` or `0.001` |
| queries per second | `50_000`; in steps of the same length `\"steps:10000,20000,40000/5s\"`, the last one going on; in a straight line `\"ramp:1000..100000/30s\"` |
| path | in quotes; a relative one starts from the folder of the file, on the command line from the current folder |
| IP address or host name | `\"192.0.2.1\"`, `\"2001:db8::1\"`; for an external server also a host name, which is looked up once, the interface of a link-local address, and a port: `\"192.0.2.1:5300\"`, `\"[2001:db8::1]:5300\"`, `\"fe80::1%eth0\"`, `\"ns1.example:5300\"` |
| list of CPU numbers | `[0, 1]`, each once |
| list of EDNS options | `[\"65001:c0ffee\", \"3:\"]`: the code, a colon, the octets in hexadecimal |

## What not every transport has

Variants mostly differ in their transport, and what they share stands above them. So a key that only
some transports use (of TLS, HTTP, padding, truncated answers) may stand above a variant that does not
use it; where no variant under it does, it is an error, as is a combination that cannot be.

## Overrides

`--set key=value` changes a key of the experiment for one call, `--set variant.NAME.key=value` a key
of one variant. The value is written as in the file; quotes may be left out. What is nearer to the
run wins: the file, then `--set key`, then the variant, then `--set variant.NAME.key`. Of
`load.outstanding` and `load.rate` the nearer one wins too; both in the same place are an error. An
override that no variant takes, because each has a value of its own, is an error.

";

/// Title of each table, prefix of its keys, and a remark.
const SECTIONS: [(&str, &str, &str); 16] = [
    ("The experiment", "", "They belong to the experiment as a whole."),
    ("`[server]`", "server.", "The server under test. A variant may override them."),
    (
        "`[upstream]`",
        "upstream.",
        "The server that a forwarder asks. A chain begins with `[server]`, goes on with `[relay]`, if \
         there is one, and ends here. A variant may override them.",
    ),
    (
        "`[relay]`",
        "relay.",
        "A forwarder between `[server]` and `[upstream]`. A variant may override them.",
    ),
    ("`[lab]`", "lab.", "Where the servers run. A variant may override them."),
    (
        "`[link]`",
        "link.",
        "What the links between the hosts do to packets, alike in both directions. A variant may \
         override them.",
    ),
    ("`[load]`", "load.", "The load on it. A variant may override them."),
    ("`[event]`", "event.", "What the operator does during the load. A variant may override it."),
    ("`[expect]`", "expect.", "What a right answer is. A variant may override them."),
    (
        "`[common]`",
        "common.",
        "A load at one rate for all variants. The keys belong to the experiment as a whole.",
    ),
    ("`[compare]`", "compare.", "What is compared. A variant may override it."),
    ("`[repeat]`", "repeat.", "They belong to the experiment as a whole."),
    (
        "`[hosts]`",
        "hosts.",
        "What holds for each host of which nothing else is said. The keys belong to the experiment as a whole.",
    ),
    (
        "`[host.NAME]`",
        "host.",
        "A table for a host of which you want to say more. `server.host` and `load.hosts` then give its NAME. \
         `--set host.NAME.install=copy` sets a key for one call.",
    ),
    ("`[[variant]]`", "variant.", "One for each case, at least one."),
    (
        "`[[published]]`",
        "published.",
        "One for each figure that somebody published of such an experiment. The report holds its own beside it.",
    ),
];

/// The reference of the experiment file, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut text = INTRODUCTION.to_owned();
    for (title, prefix, remark) in SECTIONS {
        let keys: Vec<&Key> = match prefix {
            "" => keys().filter(|key| !key.path.contains('.')).collect(),
            "variant." => vec![&VARIANT_NAME],
            "published." => PUBLISHED_KEYS.iter().collect(),
            "host." => HOST_KEYS.iter().collect(),
            _ => keys().filter(|key| key.path.starts_with(prefix)).collect(),
        };
        write!(text, "## {title}\n\n{remark}\n\n| key | value | default | meaning |\n")
            .expect("writing to a string does not fail");
        text.push_str("| --- | --- | --- | --- |\n");
        for key in keys {
            text.push_str(&row(key));
        }
        text.push('\n');
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn row(key: &Key) -> String {
    let default = match key.default {
        DefaultValue::Required => "must be written".to_owned(),
        DefaultValue::Absent(words) => words.to_owned(),
        DefaultValue::Value(value) => {
            value().map_or_else(String::new, |value| format!("`{}`", key.kind.shown(&value)))
        }
    };
    let (kind, meaning) = (key.kind.description(), key.meaning());
    format!("| `{}` | {kind} | {default} | {meaning} |\n", key.path)
}
