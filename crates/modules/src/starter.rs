//! Working hooks to begin with.

/// What a hook to begin with is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starter {
    /// What a project begins with: the usual guards.
    Project,
    /// Rules.
    Rule,
    /// A program that is run for each event.
    Command,
    /// A program that is kept running, in Python.
    Worker,
    /// A sandboxed component, in Rust. It is built before it can be used.
    Wasm,
}

/// A file to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StarterFile {
    /// Its name; a path if it lies in a folder.
    pub name: &'static str,
    /// What is in it.
    pub text: &'static str,
    /// Whether it is a program.
    pub is_program: bool,
}

impl Starter {
    /// The files, the bundle first.
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
