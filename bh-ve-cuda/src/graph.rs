//! Graphs of CUDA: kernels in a line that the driver launches as one.

use crate::driver::Kernel;
use crate::library::{Handle, functions, open};
use crate::stream::Stream;
use bh_core::abi::status;
use bh_core::{Error, Result};
use bh_device::driver;
use std::any::Any;
use std::ffi::{c_uint, c_ulonglong, c_void};
use std::ptr;
use std::sync::{Arc, OnceLock};

/// A kernel of a graph, as the driver wants it (`CUDA_KERNEL_NODE_PARAMS_v2`).
#[repr(C)]
#[allow(dead_code, reason = "the driver reads them")]
pub(crate) struct Node {
    kernel: Handle,
    groups: [c_uint; 3],
    group: [c_uint; 3],
    local_bytes: c_uint,
    arguments: *mut *mut c_void,
    more: *mut *mut c_void,
    library_kernel: Handle,
    context: Handle,
}

functions! {
    /// The driver's functions for graphs, which drivers before CUDA 12 lack.
    Functions {
        create: "cuGraphCreate"(*mut Handle, c_uint);
        destroy: "cuGraphDestroy"(Handle);
        add: "cuGraphAddKernelNode_v2"(*mut Handle, Handle, *const Handle, usize, *const Node);
        instantiate: "cuGraphInstantiateWithFlags"(*mut Handle, Handle, c_ulonglong);
        launch: "cuGraphLaunch"(Handle, Handle);
        destroy_instance: "cuGraphExecDestroy"(Handle);
    }
}

impl Functions {
    /// Those of the driver; none if it lacks one.
    fn find() -> Option<&'static Functions> {
        static FOUND: OnceLock<Option<Functions>> = OnceLock::new();
        let find = || {
            let (library, _) = open("cuda", &[1])?;
            // SAFETY: the library is NVIDIA's driver, and stays loaded.
            let found = unsafe { Functions::of(&library) };
            std::mem::forget(library);
            found.ok()
        };
        FOUND.get_or_init(find).as_ref()
    }
}

/// A graph, under construction until it has an instance.
pub(crate) struct Graph {
    graphs: &'static Functions,
    stream: Arc<Stream>,
    handle: Handle,
    instance: Handle,
    /// The last kernel.
    last: Handle,
    /// Keeps the code of the kernels.
    modules: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Graph {
    /// An empty graph for a stream; none if the driver has none.
    pub(crate) fn new(stream: &Arc<Stream>) -> Option<Graph> {
        let graphs = Functions::find()?;
        let mut handle = Handle::NULL;
        // SAFETY: `handle` takes the graph.
        stream.context.call("making a graph", |_| unsafe { (graphs.create)(&mut handle, 0) }).ok()?;
        let (stream, instance, last, modules) = (stream.clone(), Handle::NULL, Handle::NULL, Vec::new());
        Some(Graph { graphs, stream, handle, instance, last, modules })
    }
}

impl driver::Graph for Graph {
    fn add(&mut self, kernel: &dyn driver::Kernel, groups: usize, group: usize) -> Result<()> {
        let kernel = (kernel as &dyn Any).downcast_ref::<Kernel>();
        let kernel =
            kernel.ok_or_else(|| Error::new(status::DEVICE, "CUDA: a graph has a kernel of another driver"))?;
        let mut arguments = kernel.arguments();
        let node = Node {
            kernel: kernel.handle,
            groups: [groups as c_uint, 1, 1],
            group: [group as c_uint, 1, 1],
            local_bytes: 0,
            arguments: arguments.as_mut_ptr(),
            more: ptr::null_mut(),
            library_kernel: Handle::NULL,
            context: Handle::NULL,
        };
        let before = self.last;
        let count = usize::from(before != Handle::NULL);
        // SAFETY: the places lead to a node and its arguments, of which the driver copies as many bytes as each has, at most 16.
        let mut add = || unsafe { (self.graphs.add)(&mut self.last, self.handle, &before, count, &node) };
        self.stream.context.call("adding a kernel to a graph", |_| add())?;
        self.modules.push(kernel.module());
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        // SAFETY: the graph lives, and `instance` takes what can be launched.
        let mut make = || unsafe { (self.graphs.instantiate)(&mut self.instance, self.handle, 0) };
        self.stream.context.call("making a graph ready", |_| make())
    }

    unsafe fn launch(&mut self) -> Result<()> {
        // SAFETY: the instance lives, and its kernels may run, as `# Safety` asks.
        let launch = |stream| unsafe { (self.graphs.launch)(self.instance, stream) };
        self.stream.context.call("starting a graph", |_| launch(self.stream.handle))
    }
}

impl Drop for Graph {
    /// The driver keeps what the stream has begun until it is done; modules wait for the stream themselves.
    fn drop(&mut self) {
        // SAFETY: nobody else knows the graph or its instance.
        let _ = self.stream.context.call("ending a graph", |_| unsafe {
            if self.instance != Handle::NULL {
                (self.graphs.destroy_instance)(self.instance);
            }
            (self.graphs.destroy)(self.handle)
        });
    }
}
