//! Starter hooks.

/// Kinds of starter hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// The usual guards for a project.
    Project,
    /// Rules.
    Rule,
    /// A program run for each event.
    Command,
    /// A Python program that keeps running.
    Worker,
    /// A sandboxed component in Rust, which must be built before use.
    Wasm,
}

/// A file of a starter hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StarterFile {
    /// File name; a path if the file is in a folder.
    pub name: &'static str,
    /// Content.
    pub text: &'static str,
    /// `true` if the file is executable.
    pub is_program: bool,
}

impl Starter {
    /// Returns the files, the bundle first.
    pub fn files(self) -> &'static [StarterFile] {
        const fn file(name: &'static str, text: &'static str) -> StarterFile {
            StarterFile { name, text, is_program: false }
        }
        match self {
            Self::Project => const { &[file("bundle.yaml", include_str!("../starters/init.yaml"))] },
            Self::Rule => const { &[file("bundle.yaml", include_str!("../starters/rule.yaml"))] },
            Self::Command => {
                const {
                    &[
                        file("bundle.yaml", include_str!("../starters/command.yaml")),
                        StarterFile { name: "check.sh", text: include_str!("../starters/check.sh"), is_program: true },
                    ]
                }
            }
            Self::Worker => {
                const {
                    &[
                        file("bundle.yaml", include_str!("../starters/worker.yaml")),
                        file("policy.py", include_str!("../starters/policy.py")),
                        file("amplifier_hook.py", include_str!("../helpers/amplifier_hook.py")),
                    ]
                }
            }
            Self::Wasm => {
                const {
                    &[
                        file("bundle.yaml", include_str!("../starters/wasm.yaml")),
                        file("Cargo.toml", include_str!("../starters/guard.toml")),
                        file("src/lib.rs", include_str!("../starters/guard.rs")),
                        file("wit/hook.wit", include_str!("../wit/hook.wit")),
                    ]
                }
            }
        }
    }
}
