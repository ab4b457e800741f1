//! Parts for tests only: a fake engine with fault modes, a git repository of it, a server that tells the truth, and registries of images.
//!
//! The fake engine is the program `isobench-fake-engine`. A test of another crate finds it with [`fake_engine_path`],
//! after `cargo build -p isobench-testkit` (`cargo test --workspace` builds it too). It answers like an OpenAI-compatible
//! server, on an exact schedule, with words that only the prompt decides ([`words`]), and misbehaves as told ([`Fault`]):
//! by `--fault`, or by the file `faults.txt` in its folder, so that a patch of that file makes an arm misbehave.
//!
//! The program `isobench-truth-server` is for tests of clients: it knows when each token left, and bends each rule of the
//! wire as told. [`TruthServer`] runs it.
//!
//! [`FakeRegistry`] is a registry of images in the test's own process that lies as told, [`DockerRegistry`] Debian's real one.
//! [`FakeHub`] is a hub of models and datasets on loopback that goes wrong as told ([`HubFault`]).

mod archive;
mod fault;
mod files_server;
mod hub;
mod path;
mod registry;
mod repository;
mod scripts;
mod speed;
mod task;
mod truth;
mod wheel;
pub mod words;

pub use archive::{Packing, ZipEntry, zip};
pub use fault::{Fault, InvalidFaultError};
pub use files_server::{FileAnswer, FilesServer};
pub use hub::{FakeHub, HubFault, HubFile, HubRequest};
pub use path::{fake_engine_path, truth_server_path};
pub use registry::{
    AskedRequest, DockerRegistry, Entry, FakeImage, FakeRegistry, Layer, RegistryFault, RegistrySettings, RegistryUser,
    TestCertificate,
};
pub use repository::{FakeRepository, FakeRepositoryError};
pub use scripts::ScriptRepository;
pub use speed::{InvalidSpeedError, Speed};
pub use task::{HumanArm, TaskText};
pub use truth::{TruthRecord, TruthServer};
pub use wheel::FakeWheel;
