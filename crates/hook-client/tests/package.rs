//! The program as it is shipped.

use std::path::Path;
use std::process::Command;

#[test]
fn the_shipped_program_is_smaller_than_a_megabyte() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("dist");
    let built = Command::new(env!("CARGO"))
        .args([
            "build",
            "--quiet",
            "--offline",
            "--locked",
            "--profile",
            "dist",
            "--bin",
            "amplifier-hook",
            "--target-dir",
        ])
        .arg(&target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status()
        .unwrap();
    assert!(built.success());
    let size = target.join("dist/amplifier-hook").metadata().unwrap().len();
    assert!(size < 1 << 20, "{size} bytes");
}

#[test]
fn the_program_needs_only_the_standard_library() {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--edges", "normal,build", "--prefix", "none"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let tree = String::from_utf8(output.stdout).unwrap();
    assert_eq!(tree.lines().count(), 1, "{tree}");
}
