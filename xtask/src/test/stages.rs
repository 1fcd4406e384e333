//! Table of the test stages.

use std::process::Command;

use anyhow::Result;

use super::built::Built;
use crate::clients::{Protocol, servers};
use crate::hosts::Host;
use crate::operate::Size;
use crate::run::Service;
use crate::{clients, dist, operate, packages, services, templates};

/// Duration of the mixed load with faults as a test stage, in seconds; `cargo xtask chaos` takes
/// longer.
const CHAOS_SECONDS: u64 = 15;

/// Names of stages that take minutes or gigabytes, and run only when selected by name.
pub(super) const ON_DEMAND: &[&str] = &[
    "real-servers, vllm",
    "real-servers, vllm, Responses",
    "real-servers, sglang",
    "real-servers, transformers",
    "launch, Claude Code",
    "arguments, Claude Code",
    "auto-mode, Claude Code",
    "searches, Claude Code",
    "packages, from nothing",
    "dist",
];

/// Names of stages that take long, or repeat tests of the first tier on another host. They run with
/// `--all`, or when selected by name.
pub(super) const SECOND_TIER: &[&str] = &[
    "sizes",
    "cost as shipped",
    "load of server tools",
    "clients, gateway",
    "clients, worker",
    "guards, envoy",
    "guards, worker",
    "server-tools, SDKs",
    "real-servers, mlx-lm",
    "real-servers, llama.cpp, Responses",
    "chaos, envoy",
    "chaos, gateway",
    "chaos, worker",
    "chaos, component",
    "packages, installed",
    "workflows",
    "manifests",
    "examples of core",
    "pages of the API",
    "lints wasm",
    "core as wasm",
];

/// Test stage: a name, and the work to do.
pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) work: Work,
}

pub(super) enum Work {
    /// Work: run cargo with these arguments.
    Cargo(&'static str),
    /// Work: build everything that later stages run.
    Build,
    /// Work: run the tests of a package.
    Tests(&'static str),
    /// Work: run one test file of a package, which measures an artefact. The package's other stage
    /// leaves it out.
    Measures(&'static str, &'static str),
    /// Work: run tests of a package that start servers and depend on time, and print their whole
    /// output.
    Servers(&'static str),
    /// Work: compare the artefacts' sizes with their budgets.
    Sizes,
    /// Work: run real clients, selected by name or tier, against this host. The demo model behind
    /// the host speaks this protocol.
    Clients(Host, Protocol, &'static [&'static str]),
    /// Work: call a function of this program, which runs its commands with the given `Each`.
    Own(fn(&Built, Each<'_>) -> Result<()>),
}

impl Stage {
    /// Returns true if the stage runs servers and clients, or measures time, so that a busy machine
    /// can make the stage fail.
    pub(super) fn has_clocks(&self) -> bool {
        match self.work {
            Work::Servers(_) | Work::Clients(..) | Work::Own(_) => true,
            Work::Tests(package) => package == "creole-cost",
            Work::Measures(package, _) => package == "creole-hosts",
            Work::Cargo(_) | Work::Build | Work::Sizes => false,
        }
    }

    /// Returns true if the stage measures an artefact, which must be built as it is shipped.
    pub(super) fn measures(&self) -> bool {
        matches!(self.work, Work::Sizes | Work::Measures(..))
    }

    /// Returns true if the stage must count tests. A stage without a counted test has checked
    /// nothing, and fails.
    pub(super) fn has_tests(&self) -> bool {
        match self.work {
            Work::Cargo(arguments) => arguments.starts_with("test "),
            Work::Build => false,
            _ => true,
        }
    }
}

/// Function that runs a command, prints its output, and counts its tests.
pub(super) type Each<'a> = &'a mut dyn FnMut(&mut Command) -> Result<()>;

/// Returns the stages in their order: quick stages that fail often come first, and only stages run
/// by cargo come before `build`. Every package of the workspace must have a row with its tests.
pub(super) fn stages() -> Vec<Stage> {
    let rows = [
        ("format", Work::Cargo("fmt --all --check")),
        ("lints", Work::Cargo("clippy --quiet --workspace --all-targets -- -D warnings")),
        ("build", Work::Build),
        ("core", Work::Tests("creole")),
        ("core, cost", Work::Tests("creole-cost")),
        ("core, json", Work::Tests("creole-json")),
        ("demo model", Work::Tests("creole-demo")),
        ("xtask", Work::Tests("xtask")),
        ("load generator", Work::Tests("creole-load")),
        (
            "chat templates",
            Work::Own(|built, each| templates::test(built.test("creole", "templates")?, each)),
        ),
        (
            "accumulators",
            Work::Own(|built, each| {
                clients::accumulators::test(built.test("creole", "fixtures")?, each)
            }),
        ),
        ("rig of hosts", Work::Tests("creole-rig")),
        ("filter", Work::Tests("creole-envoy")),
        ("gateway", Work::Servers("creole-gateway")),
        ("parts of Worker", Work::Tests("creole-cloudflare")),
        ("packager of Worker", Work::Tests("xtask-worker")),
        ("sizes", Work::Sizes),
        ("hosts", Work::Servers("creole-hosts")),
        ("load of server tools", Work::Measures("creole-hosts", "tool_load")),
        ("embedding", Work::Tests("creole-wit")),
        ("cost as shipped", Work::Measures("creole-wit", "cost")),
        ("wasi:http", Work::Servers("creole-wasi-http")),
        ("Worker in workerd", Work::Servers("creole-worker-tests")),
    ];
    rows.map(|(name, work)| Stage { name, work }).into()
}

/// Returns the stages that run in parallel to the others: those that mostly wait, then those run by
/// cargo, so that the other stages need not wait for cargo's locks. They start after `build`.
pub(super) fn stages_beside() -> Vec<Stage> {
    let rows = [
        ("clients, envoy", Work::Clients(Host::Envoy, Protocol::Openai, &["default"])),
        ("clients, gateway", Work::Clients(Host::Gateway, Protocol::Openai, clients::SDKS)),
        (
            "clients, gateway, Responses",
            Work::Clients(Host::Gateway, Protocol::Responses, clients::OVER_RESPONSES),
        ),
        ("clients, worker", Work::Clients(Host::Worker, Protocol::Openai, clients::SDKS)),
        ("guards, envoy", Work::Own(|_, each| clients::guards::test(Host::Envoy, each))),
        ("guards, gateway", Work::Own(|_, each| clients::guards::test(Host::Gateway, each))),
        ("guards, worker", Work::Own(|_, each| clients::guards::test(Host::Worker, each))),
        ("server-tools, SDKs", Work::Own(|_, each| clients::server_tools::test(each))),
        ("operation, envoy", Work::Own(|_, each| operate::observe(Host::Envoy, each))),
        ("operation, gateway", Work::Own(|_, each| operate::observe(Host::Gateway, each))),
        ("operation, worker", Work::Own(|_, each| operate::observe(Host::Worker, each))),
        ("operation, component", Work::Own(|_, each| operate::observe(Host::Component, each))),
        ("faults, envoy", Work::Own(|_, each| operate::faults(each))),
        ("deployment", Work::Own(|_, each| operate::deployment(each))),
        ("page", Work::Own(|_, each| operate::page(each))),
    ];
    let others = [
        ("dist", Work::Own(|_, each| dist::test(each))),
        ("workflows", Work::Own(|_, each| dist::workflows(each))),
        ("manifests", Work::Own(|_, each| operate::manifests(each))),
        ("packages, installed", Work::Own(|_, each| packages::installed(each))),
        ("packages, from nothing", Work::Own(|_, each| packages::from_nothing(each))),
        ("chaos, envoy", Work::Own(|_, each| operate::chaos(Host::Envoy, CHAOS_SECONDS, each))),
        ("chaos, gateway", Work::Own(|_, each| operate::chaos(Host::Gateway, CHAOS_SECONDS, each))),
        ("chaos, worker", Work::Own(|_, each| operate::chaos(Host::Worker, CHAOS_SECONDS, each))),
        (
            "chaos, component",
            Work::Own(|_, each| operate::chaos(Host::Component, CHAOS_SECONDS, each)),
        ),
        // Units and fixtures show what depends on the width of pointers. What the core costs as
        // WebAssembly is counted by `cost as shipped`.
        (
            "core as wasm",
            Work::Cargo(
                "test --no-fail-fast --target wasm32-wasip1 --lib --test fixtures --test stream",
            ),
        ),
        // Only the examples of the published library are tested. All packages at once would be
        // compiled anew, because dependencies of their tests add no features here.
        ("examples of core", Work::Cargo("test --doc")),
        ("pages of the API", Work::Cargo("doc --quiet --no-deps --workspace")),
        // Code that exists for WebAssembly only.
        (
            "lints wasm",
            Work::Cargo(
                "clippy --quiet --no-deps -p creole-cloudflare -p creole-envoy -p creole-wit \
                 --target wasm32-unknown-unknown \
                 --features creole-cloudflare/test-hooks,creole-envoy/test-hooks -- -D warnings",
            ),
        ),
    ];
    let rows =
        rows.into_iter().chain(claude_code()).chain(attacks()).chain(real_servers()).chain(others);
    rows.map(|(name, work)| Stage { name, work }).collect()
}

/// Returns the stages with a real Claude Code.
fn claude_code() -> [(&'static str, Work); 4] {
    [
        (
            "launch, Claude Code",
            Work::Own(|built, each| clients::launch::test(&built.program("creole")?, each)),
        ),
        (
            "arguments, Claude Code",
            Work::Own(|built, each| clients::arguments::test(&built.program("creole")?, each)),
        ),
        (
            "auto-mode, Claude Code",
            Work::Own(|built, each| clients::launch::auto_mode(&built.program("creole")?, each)),
        ),
        (
            "searches, Claude Code",
            Work::Own(|_, each| {
                clients::searches::test(services::start, &services::log(Service::Search), each)
            }),
        ),
    ]
}

/// Returns the stages with attacks on each host.
fn attacks() -> [(&'static str, Work); 4] {
    [
        (
            "attacks, gateway",
            Work::Own(|_, each| operate::attacks(Host::Gateway, Size::Small, each)),
        ),
        ("attacks, worker", Work::Own(|_, each| operate::attacks(Host::Worker, Size::Small, each))),
        (
            "attacks, component",
            Work::Own(|_, each| operate::attacks(Host::Component, Size::Small, each)),
        ),
        ("attacks, envoy", Work::Own(|_, each| operate::attacks(Host::Envoy, Size::Small, each))),
    ]
}

/// Returns the stages with real model servers.
fn real_servers() -> [(&'static str, Work); 7] {
    [
        (
            "real-servers, llama.cpp",
            Work::Own(|_, each| servers::test("llama.cpp", Protocol::Openai, each)),
        ),
        (
            "real-servers, mlx-lm",
            Work::Own(|_, each| servers::test("mlx-lm", Protocol::Openai, each)),
        ),
        (
            "real-servers, llama.cpp, Responses",
            Work::Own(|_, each| servers::test("llama.cpp", Protocol::Responses, each)),
        ),
        ("real-servers, vllm", Work::Own(|_, each| servers::test("vllm", Protocol::Openai, each))),
        (
            "real-servers, vllm, Responses",
            Work::Own(|_, each| servers::test("vllm", Protocol::Responses, each)),
        ),
        (
            "real-servers, sglang",
            Work::Own(|_, each| servers::test("sglang", Protocol::Openai, each)),
        ),
        (
            "real-servers, transformers",
            Work::Own(|_, each| servers::test("transformers", Protocol::Openai, each)),
        ),
    ]
}
