//! Instance of the filter's module, with its memory.

use wasmtime::{Engine, Instance, Linker, Module, Store, TypedFunc, WasmParams, WasmResults};

use super::world::{PLUGIN, Trap, World};
use super::{abi, wasi};

/// Instantiated module of the filter.
pub struct Vm {
    store: Store<World>,
    instance: Instance,
}

impl Vm {
    /// Instantiates the module and makes Envoy's first calls. Returns the reason if the
    /// configuration is refused.
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
        let mut store = Store::new(engine, World::at(1_790_000_000_000));
        let mut linker = Linker::new(engine);
        abi::link(&mut linker)?;
        wasi::link(&mut linker)?;
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

    /// Returns the state that the imports use, mutably.
    pub fn world_mut(&mut self) -> &mut World {
        self.store.data_mut()
    }

    /// Sets the context that hostcalls refer to from now on.
    pub fn in_context(&mut self, context: u32) {
        self.store.data_mut().context = context;
    }

    /// Calls an export of the module.
    pub fn call<P: WasmParams, R: WasmResults>(
        &mut self,
        name: &str,
        parameters: P,
    ) -> Result<R, Trap> {
        let function: TypedFunc<P, R> = self.instance.get_typed_func(&mut self.store, name)?;
        function.call(&mut self.store, parameters)
    }
}
