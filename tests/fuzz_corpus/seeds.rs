//! Seeds made from the golden transcript and by hand: the hostile inputs of
//! `spec/transcript.md` and of `tests/model`, as small as they can be.

use attest::interop::dsse::Envelope as Dsse;
use attest::interop::in_toto::{Exporter, Statement as Export};
use attest::transcript::Transcript;
use attest::transcript::cose::Envelope;
use attest::transcript::key::PrivateKey;
use attest::transcript::opening::Draw;

use crate::bodies::folder::{CONFIG, SHARDS, header};
use crate::bodies::openings::honest;

/// Target, file name, contents.
pub(crate) type Seed = (&'static str, String, Vec<u8>);

/// Names and contents, of one target.
type List = Vec<(&'static str, Vec<u8>)>;

/// Every seed that is made.
pub(crate) fn all() -> Vec<Seed> {
    let mut seeds = Vec::new();
    let targets: [(&'static str, List); 11] = [
        ("scanner", scanner()),
        ("cose", cose()),
        ("statement", statement()),
        ("transcript", transcript()),
        ("openings", openings()),
        ("trust_store", trust_store()),
        ("safetensors_header", safetensors_header()),
        ("index", index()),
        ("tokenizer", tokenizer()),
        ("config", config()),
        ("export", export()),
    ];
    for (target, list) in targets {
        seeds.extend(list.into_iter().map(|(name, bytes)| (target, name.to_owned(), bytes)));
    }
    seeds
}

const GOLDEN: &[u8] = include_bytes!("../golden/transcript-v1.cbor");

fn golden() -> Transcript {
    Transcript::parse(GOLDEN.to_vec()).unwrap()
}

fn hex(text: &str) -> Vec<u8> {
    hex::decode(text.replace(' ', "")).unwrap()
}

/// Encodings that are refused, whatever they are in.
fn encodings() -> List {
    vec![
        ("refused-duplicate-key", hex("a2 6161 01 6161 02")),
        ("refused-longer-integer", hex("18 17")),
        ("refused-indefinite-bytes", hex("5f 41aa 41bb ff")),
        ("refused-array-of-2-to-62", hex("9b 4000000000000000")),
        ("refused-bytes-of-2-to-63", hex("5b 7fffffffffffffff")),
        ("refused-array-of-112-million", hex("9a 06b49d20")),
        ("refused-map-whose-count-overflows", hex("bb 8000000000000001")),
        ("refused-nested-arrays", [vec![0x81; 4000], vec![0x00]].concat()),
        ("refused-nested-tags", [vec![0xc0; 300], vec![0x00]].concat()),
        ("refused-float", hex("f9 7e00")),
        ("refused-text-not-utf8", hex("61 ff")),
        ("refused-nothing", vec![]),
    ]
}

fn scanner() -> List {
    let statement = golden().statement_bytes().to_vec();
    let mut list = encodings();
    list.push(("accepted-integers", hex("83 17 1818 3903e7")));
    list.push(("accepted-map", hex("a2 01 6161 20 41ff")));
    list.push(("accepted-depth-16", [vec![0x81; 15], vec![0x00]].concat()));
    list.push(("refused-trailing-byte", [&statement[..], &[0]].concat()));
    list.push(("accepted-statement", statement));
    list
}

fn cose() -> List {
    let item_0 = golden().item_0().to_vec();
    // d2 84 58 31 a3 01 27 …
    let with = |from: &[u8], to: &[u8]| {
        let at = item_0.windows(from.len()).position(|window| window == from).unwrap();
        [&item_0[..at], to, &item_0[at + from.len()..]].concat()
    };
    let protected = [&[0x58, 0x31][..], &item_0[4..4 + 0x31]].concat();
    vec![
        ("refused-empty-protected-header", with(&protected, &[0x40])),
        ("refused-protected-header-of-an-empty-map", with(&protected, &[0x41, 0xa0])),
        ("refused-longer-prefix-of-the-protected-header", with(&[0x58, 0x31], &[0x59, 0, 0x31])),
        ("refused-label-in-two-bytes", with(&[0x31, 0xa3, 0x01], &[0x32, 0xa3, 0x18, 0x01])),
        ("refused-untagged", item_0[1..].to_vec()),
        ("refused-array-of-three", with(&[0xd2, 0x84], &[0xd2, 0x83])),
        ("refused-cut", item_0[..item_0.len() - 1].to_vec()),
        ("accepted-ed25519", with(&[0xa3, 0x01, 0x27], &[0xa3, 0x01, 0x32])),
        ("accepted-empty-payload", Envelope::seal(&[], &key())),
        ("accepted-golden", item_0),
    ]
}

fn statement() -> List {
    let statement = golden().statement_bytes().to_vec();
    let mut list = encodings();
    list.push(("refused-trailing-byte", [&statement[..], &[0]].concat()));
    list.push(("refused-cut", statement[..statement.len() / 2].to_vec()));
    list.push((
        "refused-an-unknown-critical-key",
        [&[statement[0] + 1], &statement[1..], &hex("15 00")].concat(),
    ));
    list.push((
        "accepted-an-optional-key",
        [&[statement[0] + 1], &statement[1..], &hex("1840 8100")].concat(),
    ));
    list.push(("accepted-golden", statement));
    list
}

fn transcript() -> List {
    let golden = golden();
    let mut other = golden.statement().clone();
    other.claimed_time += 1;
    let mut longer = other.clone();
    longer.tokens_out[0] += 1;
    let sections = &GOLDEN[golden.item_0().len()..];
    let sealed = |payload: &[u8]| [&Envelope::seal(payload, &key())[..], sections].concat();
    let mut spliced = golden.item_0().to_vec();
    let mut foreign = sections.to_vec();
    foreign[1] ^= 1;
    spliced.extend(foreign);
    let alone = [golden.item_0(), &[0xf6, 0xf6]].concat();
    vec![
        ("refused-sections-of-another", spliced),
        ("refused-trailing-byte", [GOLDEN, &[0]].concat()),
        ("refused-cut", GOLDEN[..GOLDEN.len() - 1].to_vec()),
        ("refused-without-a-section", GOLDEN[..golden.item_0().len() + 17].to_vec()),
        ("refused-opening-of-2-to-63", [&alone[..], &hex("a2 02 5b 7fffffffffffffff")].concat()),
        (
            "refused-draw-without-a-nonce",
            [&alone[..], &hex("a3 01 a2 01 01 02 40 02 40 03 40")].concat(),
        ),
        ("accepted-another-token", sealed(&longer.to_bytes().unwrap())),
        ("accepted-another-time", sealed(&other.to_bytes().unwrap())),
        ("accepted-withheld", alone),
        ("accepted-golden", GOLDEN.to_vec()),
    ]
}

fn openings() -> List {
    let draw = |cells| Draw { cells, nonce: vec![7] };
    let all = honest(None);
    let one = honest(Some(&draw(1)));
    let mut another = one.clone();
    another[7] ^= 1;
    let mut row = all.clone();
    row[10] ^= 1;
    vec![
        ("refused-a-changed-row", row),
        ("refused-rows-of-another-draw", another),
        ("refused-cut", one[..one.len() - 1].to_vec()),
        (
            "refused-nodes-of-2-to-62",
            [&one[..one.len() - 34], &hex("5b 4000000000000000")].concat(),
        ),
        ("refused-a-node-too-many", [&all[..all.len() - 1], &hex("5820"), &[7; 32]].concat()),
        ("refused-nothing", Vec::new()),
        ("accepted-one-cell", one),
        ("accepted-more-cells-than-there-are", honest(Some(&draw(u64::MAX)))),
        ("accepted-everything", all),
    ]
}

fn trust_store() -> List {
    let public = key().public().to_hex();
    let entry = |key: &str, rest: &str| {
        format!("[[key]]\nname = \"lab\"\npublic_key = \"{key}\"\nrole = \"prover\"\nmodels = \"*\"\n{rest}\n")
            .into_bytes()
    };
    let weak = "01".to_owned() + &"00".repeat(31);
    vec![
        ("refused-weak-key", entry(&weak, "")),
        ("refused-no-point", entry(&"ff".repeat(32), "")),
        ("refused-unknown-field", entry(&public, "more = 1")),
        (
            "refused-window-the-wrong-way",
            entry(&public, "valid_from = 2026-01-02\nvalid_until = 2026-01-01"),
        ),
        ("refused-revoked-without-a-reason", entry(&public, "revoked_at = 2026-01-01")),
        ("refused-no-such-day", entry(&public, "valid_from = 2026-02-30")),
        ("refused-not-utf8", vec![0xff]),
        (
            "accepted-every-field",
            entry(
                &public,
                "valid_from = 2026-01-01\nvalid_until = 2027-01-01T00:00:00+01:00\nrevoked_at = 2026-06-01\nreason = \"lost\"",
            ),
        ),
        ("accepted-nobody", vec![]),
    ]
}

fn safetensors_header() -> List {
    let first = |more: i8| vec![more as u8];
    let whole = header(|_| true);
    let raw = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let shape = r#"{"x":{"dtype":"BF16","shape":[1000,1000],"data_offsets":[0,4]}}"#;
    let twice = r#"{"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]},"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}}"#;
    let overflow = r#"{"x":{"dtype":"BF16","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,2]}}"#;
    let backwards = r#"{"x":{"dtype":"BF16","shape":[1],"data_offsets":[2,0]}}"#;
    vec![
        ("refused-length-of-all-ones", [&[0][..], &[0xff; 8]].concat()),
        ("refused-length-over-the-cap", [&[0][..], &100_000_001u64.to_le_bytes(), b"{}"].concat()),
        ("refused-shape-against-offsets", [first(0), raw(shape)].concat()),
        ("refused-name-twice", [first(0), raw(twice)].concat()),
        ("refused-shape-that-overflows", [first(0), raw(overflow)].concat()),
        ("refused-offsets-backwards", [first(0), raw(backwards)].concat()),
        (
            "refused-lfs-pointer",
            [&[0][..], b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n"]
                .concat(),
        ),
        ("refused-trailing-byte", [first(1), whole.clone()].concat()),
        ("refused-a-byte-less", [first(-1), whole.clone()].concat()),
        ("refused-a-tensor-less", [first(0), header(|tensor| tensor != "lm_head.weight")].concat()),
        ("accepted-whole", [first(0), whole].concat()),
    ]
}

fn index() -> List {
    let names = |of: &str| {
        let text = String::from_utf8(header(|_| true)[8..].to_vec()).unwrap();
        let names: Vec<String> = text
            .split('"')
            .filter(|part| part.ends_with(".weight"))
            .map(|name| {
                let shard = SHARDS[usize::from(name.contains("layers"))];
                let shard = if name == "model.norm.weight" { of } else { shard };
                format!("\"{name}\":\"{shard}\"")
            })
            .collect();
        format!("{{\"metadata\":{{\"total_size\":1}},\"weight_map\":{{{}}}}}", names.join(","))
            .into_bytes()
    };
    vec![
        ("refused-parent-folder", names("../other.safetensors")),
        ("refused-absolute", names("/etc/passwd")),
        ("refused-subfolder", names("a/b.safetensors")),
        ("refused-backslash", names("..\\\\other.safetensors")),
        ("refused-missing-shard", names("c.safetensors")),
        ("refused-the-other-shard", names(SHARDS[1])),
        ("refused-a-number", br#"{"weight_map":{"x":1}}"#.to_vec()),
        ("refused-no-map", br#"{"weight_map":[]}"#.to_vec()),
        ("refused-key-twice", br#"{"weight_map":{},"weight_map":{}}"#.to_vec()),
        ("accepted-two-shards", names(SHARDS[0])),
    ]
}

/// As `tests/model/folder.rs` has it.
const TOKENIZER: &str = r#"{"version":"1.0","truncation":null,"padding":null,"normalizer":{"type":"NFC"},
"added_tokens":[{"id":3,"content":"<|end|>","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true}],
"pre_tokenizer":{"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\s+|\\p{L}+"},"behavior":"Isolated","invert":false},
{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false}]},
"post_processor":null,"decoder":{"type":"ByteLevel","add_prefix_space":false,"trim_offsets":false,"use_regex":false},
"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":[["a","b"]]}}"#;

fn tokenizer() -> List {
    let with = |from: &str, to: &str| TOKENIZER.replacen(from, to, 1).into_bytes();
    vec![
        ("refused-an-id-without-a-row", with("\"ab\":2", "\"ab\":64")),
        ("refused-no-tokens", with("\"a\":0,\"b\":1,\"ab\":2", "")),
        ("refused-merge-of-no-token", with("[\"a\",\"b\"]", "[\"a\",\"x\"]")),
        ("refused-regex", with("\\\\s+|", "(")),
        ("refused-nothing", vec![]),
        (
            "refused-cut-inside-the-decoder",
            TOKENIZER[..TOKENIZER.rfind("trim_offsets").unwrap()].into(),
        ),
        ("refused-key-twice", with("\"type\":\"NFC\"", "\"type\":\"NFC\",\"type\":\"NFC\"")),
        ("refused-a-normaliser-that-panics", with("NFC", "Precompiled")),
        (
            "accepted-truncation",
            with(
                "\"truncation\":null",
                "\"truncation\":{\"direction\":\"Right\",\"max_length\":1,\"strategy\":\"LongestFirst\",\"stride\":0}",
            ),
        ),
        ("accepted-byte-pairs", TOKENIZER.into()),
    ]
}

fn config() -> List {
    let with = |from: &str, to: &str| CONFIG.replacen(from, to, 1).into_bytes();
    vec![
        ("refused-no-layers", with("\"num_hidden_layers\":1", "\"num_hidden_layers\":0")),
        (
            "refused-2-to-64-layers",
            with("\"num_hidden_layers\":1", "\"num_hidden_layers\":18446744073709551616"),
        ),
        ("refused-key-twice", with("\"vocab_size\":1", "\"vocab_size\":1,\"vocab_size\":1")),
        ("refused-unknown-field", with("{", "{\"more\":1,")),
        ("refused-quantised", with("{", "{\"quantization_config\":{\"quant_method\":\"fp8\"},")),
        ("refused-epsilon-of-zero", with("1e-6", "0")),
        ("refused-nested", "[".repeat(4000).into_bytes()),
        (
            "accepted-rope-of-transformers-5",
            with(
                "\"rope_theta\":10000",
                "\"rope_parameters\":{\"rope_theta\":10000.0,\"rope_type\":\"default\"}",
            ),
        ),
        ("accepted-smallest", CONFIG.into()),
    ]
}

fn export() -> List {
    let exporter = Exporter {
        name: "attest".into(),
        version: "1".into(),
        time: "2026-12-01T00:00:00Z".into(),
    };
    let payload = Export::of(&golden(), exporter).unwrap().to_json();
    let envelope = Dsse::seal(payload.clone(), &key()).to_json();
    let text = String::from_utf8(payload.clone()).unwrap();
    let with = |from: &str, to: &str| text.replacen(from, to, 1).into_bytes();
    vec![
        ("refused-another-type", envelope.replace("in-toto", "x").into_bytes()),
        (
            "refused-unsigned",
            br#"{"payloadType":"application/vnd.in-toto+json","payload":"","signatures":[]}"#
                .to_vec(),
        ),
        ("refused-member-twice", envelope.replacen('{', "{\"payload\":\"\",", 1).into_bytes()),
        ("refused-signed-nothing", Dsse::seal(vec![], &key()).to_json().into_bytes()),
        ("refused-checked", with("\"transcriptChecked\":false", "\"transcriptChecked\":true")),
        ("refused-another-predicate", with("export:v1", "export:v2")),
        ("refused-no-subject", with("\"subject\":[", "\"subject\":[],\"x\":[")),
        ("accepted-statement", payload),
        ("accepted-envelope", envelope.into_bytes()),
    ]
}

/// The key of the golden transcript.
fn key() -> PrivateKey {
    PrivateKey::from_seed(&[7; 32])
}
