//! Folders: links, names that claim a digest, stray files, and no network.

use std::fs;
use std::path::Path;

use crate::command::{Home, fails};
use crate::folder::{FIRST, SECOND, home, refused, run, shard};
use crate::judged;

/// Makes the folder `model` a link to a snapshot of a Hugging Face cache, whose weights
/// are a blob of this name.
#[cfg(unix)]
fn cache(home: &Home, blob: &str) {
    let entry = home.path("hub/models--Pequod--Tiny");
    fs::create_dir_all(entry.join("snapshots")).unwrap();
    fs::create_dir_all(entry.join("blobs")).unwrap();
    fs::create_dir_all(entry.join("refs")).unwrap();
    fs::write(entry.join("refs/main"), "0123abc").unwrap();
    fs::rename(home.path("model"), entry.join("snapshots/0123abc")).unwrap();
    let weights = entry.join("snapshots/0123abc/model.safetensors");
    fs::rename(&weights, entry.join("blobs").join(blob)).unwrap();
    std::os::unix::fs::symlink(format!("../../blobs/{blob}"), &weights).unwrap();
    std::os::unix::fs::symlink(entry.join("snapshots/0123abc"), home.path("model")).unwrap();
}

fn digest(path: &Path) -> String {
    attest::num::sha256(&[&fs::read(path).unwrap()]).to_string()
}

/// Rows 6 and 36: found in the cache by name, with variables set that make other tools
/// look for a network first, and a proxy that nobody answers.
#[cfg(unix)]
#[test]
fn a_cache_of_links_is_used_and_no_network_is_asked() {
    let home = home();
    cache(&home, &digest(&home.path("model/model.safetensors")));
    let offline = |args: &[&str]| {
        let mut command = home.attest(args);
        command.env("HF_HUB_CACHE", home.path("hub")).env("HF_HUB_OFFLINE", "1");
        for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy"] {
            command.env(proxy, "http://192.0.2.1:9");
        }
        command
    };
    let ended = crate::end(&mut offline(&["verify", "t.cbor", "--model", "Pequod/Tiny"]));
    assert_eq!(ended.exit, 0, "{}{}", ended.stdout, ended.stderr);
    assert_eq!(ended.stdout.lines().last(), Some("VERIFIED"));
    let run = ["run", "--prompt", "p.txt", "--engine", "emulator", "--max-new-tokens", "1"];
    let named = |name: &'static str| [&run[..], &["--model", name]].concat();
    let ended = crate::end(&mut offline(&named("Pequod/Tiny")));
    assert_eq!(ended.exit, 0, "{}", ended.stderr);
    let absent = fails(&mut offline(&named("Qwen/Qwen3-4B")), 5, &["there is no model named"]);
    assert!(absent.stderr.contains("nothing is downloaded"), "{}", absent.stderr);
}

/// Row 36, of the sources: what opens no socket needs no switch to stay offline.
#[test]
fn no_source_opens_a_socket() {
    fn files(folder: &Path, all: &mut Vec<std::path::PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { files(&path, all) } else { all.push(path) }
        }
    }
    let mut all = Vec::new();
    files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut all);
    assert!(all.len() > 100, "{}", all.len());
    for path in all {
        let source = fs::read_to_string(&path).unwrap();
        for word in ["std::net", "std::os::unix::net", "TcpStream", "UdpSocket", "to_socket_addrs"]
        {
            assert!(!source.contains(word), "{word} in {}", path.display());
        }
    }
}

/// Row 7: a blob that is gone, and a link relative to another folder than its own.
#[cfg(unix)]
#[test]
fn a_dangling_link_is_named_with_its_target() {
    let home = home();
    let blob = digest(&home.path("model/model.safetensors"));
    cache(&home, &blob);
    let (entry, link) = (home.path("hub/models--Pequod--Tiny"), "model/model.safetensors");
    fs::remove_file(entry.join("blobs").join(&blob)).unwrap();
    refused(&home, 5, &format!("dangling link model.safetensors -> ../../blobs/{blob}"));
    fs::remove_file(home.path(link)).unwrap();
    std::os::unix::fs::symlink(format!("blobs/{blob}"), home.path(link)).unwrap();
    refused(&home, 5, &format!("dangling link model.safetensors -> blobs/{blob}"));
}

/// Row 8.
#[cfg(unix)]
#[test]
fn the_name_of_a_blob_is_no_digest_of_it() {
    let home = home();
    let content = digest(&home.path("model/model.safetensors"));
    let name = "0".repeat(64);
    cache(&home, &name);
    let sentence =
        format!("model.safetensors links to blob {name}, whose content has SHA-256 {content}");
    refused(&home, 5, &sentence);
}

/// Row 24: what does not take part does not matter.
#[test]
fn stray_files_and_links_do_not_matter() {
    let home = home();
    home.write("model/.gitattributes", "*.safetensors filter=lfs\n");
    home.write("model/README.md", "read me\n");
    home.write("model/pytorch_model.bin", "other weights\n");
    #[cfg(unix)]
    std::os::unix::fs::symlink("/nowhere/at/all", home.path("model/stray")).unwrap();
    judged(&home, &["--model", "model"], 0, "model ", &["4 files match the manifest"]);
}

/// Row 24: what does is listed by what happened to it.
#[test]
fn every_file_that_was_added_removed_or_changed_is_listed() {
    let home = home();
    shard(&home);
    home.write("model/generation_config.json", "{\"eos_token_id\": 0}");
    let words = [
        "model.safetensors is missing",
        "generation_config.json has 19 bytes, expected 82",
        &format!("{FIRST} is not in the manifest"),
        &format!("{SECOND} is not in the manifest"),
        "model.safetensors.index.json is not in the manifest",
    ];
    judged(&home, &["--model", "model"], 5, "model ", &words);

    // A shard under another name: the index does not find it.
    let ran = run(&home, "p.txt", &[]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    fs::rename(home.path("o.cbor"), home.path("t.cbor")).unwrap();
    let renamed = home.path("model/model-00003-of-00002.safetensors");
    fs::rename(home.path("model").join(SECOND), renamed).unwrap();
    refused(&home, 5, &format!("shard {SECOND} of 11 tensors is missing from "));
}
