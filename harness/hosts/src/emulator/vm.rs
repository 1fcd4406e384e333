//! A module of the filter with its memory, and what Envoy shows it at a moment.

use std::collections::BTreeMap;

use wasmtime::{Engine, Instance, Linker, Module, Store, TypedFunc, WasmParams, WasmResults};

use crate::Header;

/// The root context: the plugin.
pub const PLUGIN: u32 = 1;

/// Request or response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards the upstream.
    Request = 0,
    /// Towards the client.
    Response = 1,
}

/// Part of a stream's side that the filter can see.
#[derive(Debug, Default)]
pub struct Way {
    /// The head.
    pub headers: Vec<Header>,
    /// Whether the head can still be changed: in its callback, and while it is paused.
    pub headers_open: bool,
    /// The buffer of the body callback that runs, and what is kept after one that paused; otherwise
    /// `None`.
    pub buffer: Option<Vec<u8>>,
}

/// An answer that the filter gave.
#[derive(Clone, Debug)]
pub struct Local {
    /// The status.
    pub status: u16,
    /// `response_code_details`
    pub details: String,
    /// Headers.
    pub headers: Vec<Header>,
    /// The body.
    pub body: Vec<u8>,
}

/// Part of an HTTP stream that the filter can see.
#[derive(Debug, Default)]
pub struct Stream {
    /// Directions of the stream, indexed by [`Side`].
    pub ways: [Way; 2],
    /// `response.code_details`
    pub details: String,
    /// Sent when the callback has returned, as Envoy does.
    pub local: Option<Local>,
    /// Reset when the callback has returned.
    pub close: bool,
    /// True if the data that waits for the client goes on when the callback has returned.
    pub resume: bool,
}

/// Everything that the imports touch.
#[derive(Debug, Default)]
pub struct World {
    /// The streams by their context.
    pub streams: BTreeMap<u32, Stream>,
    /// Number of streams that there were.
    pub contexts: u32,
    /// The context of hostcalls.
    pub context: u32,
    /// The plugin's configuration.
    pub configuration: Vec<u8>,
    /// The clock.
    pub now_ms: u64,
    /// Lines that were logged.
    pub log: Vec<String>,
    /// The period of ticks; 0: none.
    pub tick_ms: u32,
    /// Statistics by id: name and, of counters, value.
    pub counters: Vec<(String, i64)>,
    /// Hostcalls that failed: the filter asked for what Envoy would refuse.
    pub refused: Vec<String>,
    /// The next `set_buffer` ends the stream before it returns, as it does when a limit is hit.
    pub end_in_set_buffer: bool,
    entropy: u64,
}

impl World {
    pub(super) fn way(&mut self, side: Side) -> Option<&mut Way> {
        let stream = self.streams.get_mut(&self.context)?;
        Some(&mut stream.ways[side as usize])
    }
}

/// The module, instantiated.
pub struct Vm {
    store: Store<World>,
    instance: Instance,
}

/// Error of a call into the module that trapped: Envoy would have lost the whole VM.
pub type Trap = wasmtime::Error;

impl Vm {
    /// Instantiates, and calls what Envoy calls first. Gives the reason if the configuration is
    /// refused.
    pub fn start(module: &Module, configuration: &str) -> Result<Self, String> {
        let mut vm = Self::instantiate(module).map_err(|error| format!("{error:?}"))?;
        vm.store.data_mut().configuration = configuration.as_bytes().to_vec();
        vm.configure()
            .map_err(|error| format!("{error:?}"))?
            .then_some(())
            .ok_or_else(|| vm.world().log.join("\n"))?;
        Ok(vm)
    }

    fn instantiate(module: &Module) -> Result<Self, Trap> {
        let engine: &Engine = module.engine();
        let world = World { now_ms: 1_790_000_000_000, ..World::default() };
        let mut store = Store::new(engine, world);
        let mut linker = Linker::new(engine);
        super::abi::link(&mut linker)?;
        super::wasi::link(&mut linker)?;
        let instance = linker.instantiate(&mut store, module)?;
        Ok(Self { store, instance })
    }

    fn configure(&mut self) -> Result<bool, Trap> {
        if self.instance.get_func(&mut self.store, "_initialize").is_some() {
            self.call::<(), ()>("_initialize", ())?;
        }
        let length = i32::try_from(self.world().configuration.len())?;
        self.in_context(PLUGIN);
        self.call::<(u32, u32), ()>("proxy_on_context_create", (PLUGIN, 0))?;
        let started = self.call::<(u32, i32), i32>("proxy_on_vm_start", (PLUGIN, 0))?;
        let configured = self.call::<(u32, i32), i32>("proxy_on_configure", (PLUGIN, length))?;
        Ok(started == 1 && configured == 1)
    }

    /// Returns the state that the imports use.
    pub fn world(&self) -> &World {
        self.store.data()
    }

    /// Returns the state that the imports use, to change it.
    pub fn world_mut(&mut self) -> &mut World {
        self.store.data_mut()
    }

    /// Hostcalls are about this context from now on.
    pub fn in_context(&mut self, context: u32) {
        self.store.data_mut().context = context;
    }

    /// Calls an export.
    pub fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        name: &str,
        parameters: P,
    ) -> Result<R, Trap> {
        let function: TypedFunc<P, R> = self.instance.get_typed_func(&mut self.store, name)?;
        function.call(&mut self.store, parameters)
    }
}

/// Bytes that differ each time, the same in each run.
pub(super) fn entropy(world: &mut World) -> u64 {
    world.entropy = world.entropy.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    world.entropy
}
