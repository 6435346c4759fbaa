"""The speed of the runtime itself on a device, through libOpenCL and nothing else: copies, launches, small reads."""

import ctypes
import time

BYTES = 1 << 30
GPU, PROCESSOR = 4, 2
PROFILING, STARTED, ENDED = 2, 0x1282, 0x1283
TRIPLES = """
__kernel void copy(__global const double *restrict a, __global double *restrict b, const long n) {
    for (long i = get_global_id(0); i < n; i += get_global_size(0)) b[i] = a[i];
}
__kernel void nothing(__global double *b) {}
"""


class Failure(RuntimeError):
    """A call of OpenCL that did not return success."""


class Device:
    """The device of a kind with most memory; with the text of a program a queue on it and this program. With `timed` the device
    measures each kernel (`kernel_seconds`)."""

    def __init__(self, text=TRIPLES, kind=GPU, options="", library="libOpenCL.so.1", timed=False):
        self.cl = ctypes.CDLL(library)
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer", "clCreateProgramWithSource", "clCreateKernel"):
            getattr(self.cl, name).restype = ctypes.c_void_p
        self.device = max(self._devices(kind), key=self._memory)
        self.queue = self.program = None
        self.events = [] if timed else None
        if text:
            self._prepare(text, options)

    def _prepare(self, text, options):
        code = ctypes.c_int()
        self.context = ctypes.c_void_p(self.cl.clCreateContext(None, 1, ctypes.byref(self.device), None, None, ctypes.byref(code)))
        self._good(code.value, "clCreateContext")
        properties = ctypes.c_uint64(0 if self.events is None else PROFILING)
        self.queue = ctypes.c_void_p(self.cl.clCreateCommandQueue(self.context, self.device, properties, ctypes.byref(code)))
        self._good(code.value, "clCreateCommandQueue")
        source = ctypes.c_char_p(text.encode())
        program = self.cl.clCreateProgramWithSource(self.context, 1, ctypes.byref(source), None, ctypes.byref(code))
        self.program = ctypes.c_void_p(program)
        self._good(self.cl.clBuildProgram(self.program, 1, ctypes.byref(self.device), options.encode(), None, None), "clBuildProgram")

    def buffer(self, size):
        """Memory of the device."""
        code = ctypes.c_int()
        made = self.cl.clCreateBuffer(self.context, ctypes.c_uint64(1), ctypes.c_size_t(size), None, ctypes.byref(code))
        self._good(code.value, "clCreateBuffer")
        return ctypes.c_void_p(made)

    def release(self, buffer):
        """Gives it back."""
        self._good(self.cl.clReleaseMemObject(buffer), "clReleaseMemObject")

    def write(self, buffer, data):
        """Copies an array of NumPy to it."""
        place = ctypes.c_void_p(data.ctypes.data)
        code = self.cl.clEnqueueWriteBuffer(self.queue, buffer, 1, ctypes.c_size_t(0), ctypes.c_size_t(data.nbytes), place, 0, None, None)
        self._good(code, "clEnqueueWriteBuffer")

    def read(self, buffer, data):
        """Copies it to an array of NumPy, behind all that is in the queue."""
        place = ctypes.c_void_p(data.ctypes.data)
        code = self.cl.clEnqueueReadBuffer(self.queue, buffer, 1, ctypes.c_size_t(0), ctypes.c_size_t(data.nbytes), place, 0, None, None)
        self._good(code, "clEnqueueReadBuffer")

    @staticmethod
    def _good(code, what):
        if code:
            raise Failure(f"{what} returned {code}")

    def _devices(self, kind):
        platforms = (ctypes.c_void_p * 16)()
        count = ctypes.c_uint()
        self._good(self.cl.clGetPlatformIDs(16, platforms, ctypes.byref(count)), "clGetPlatformIDs")
        found = []
        for platform in platforms[: count.value]:
            devices, some = (ctypes.c_void_p * 16)(), ctypes.c_uint()
            if self.cl.clGetDeviceIDs(ctypes.c_void_p(platform), ctypes.c_uint64(kind), 16, devices, ctypes.byref(some)) == 0:
                found += [ctypes.c_void_p(device) for device in devices[: some.value]]
        if not found:
            raise Failure("there is no such device")
        return found

    def name(self):
        """The device's name."""
        text = ctypes.create_string_buffer(256)
        self._good(self.cl.clGetDeviceInfo(self.device, 0x102B, ctypes.c_size_t(256), text, None), "clGetDeviceInfo")
        return text.value.decode()

    def _memory(self, device):
        value = ctypes.c_uint64()
        self.cl.clGetDeviceInfo(device, 0x101F, ctypes.c_size_t(8), ctypes.byref(value), None)
        return value.value

    def kernel(self, name):
        """A kernel of the program above."""
        code = ctypes.c_int()
        made = ctypes.c_void_p(self.cl.clCreateKernel(self.program, name.encode(), ctypes.byref(code)))
        self._good(code.value, "clCreateKernel")
        return made

    def arguments(self, kernel, *values):
        """Sets the arguments of a kernel: buffers and numbers of ctypes."""
        for at, value in enumerate(values):
            self._good(self.cl.clSetKernelArg(kernel, at, ctypes.c_size_t(ctypes.sizeof(value)), ctypes.byref(value)), "clSetKernelArg")

    def launch(self, kernel, items, group=256):
        """Puts a kernel into the queue; `items` and `group` are numbers, or one for each dimension."""
        items, group = ((size,) if isinstance(size, int) else size for size in (items, group))
        sizes = [(ctypes.c_size_t * len(items))(*size) for size in (items, group)]
        event = None if self.events is None else ctypes.c_void_p()
        done = None if event is None else ctypes.byref(event)
        code = self.cl.clEnqueueNDRangeKernel(self.queue, kernel, len(items), None, sizes[0], sizes[1], 0, None, done)
        self._good(code, "clEnqueueNDRangeKernel")
        if event is not None:
            self.events.append(event)

    def kernel_seconds(self):
        """Seconds that the kernels since the last call took by the device's clock; they must be done."""
        total = 0
        for event in self.events:
            times = [ctypes.c_uint64(), ctypes.c_uint64()]
            for which, time_of in zip((STARTED, ENDED), times):
                code = self.cl.clGetEventProfilingInfo(event, which, ctypes.c_size_t(8), ctypes.byref(time_of), None)
                self._good(code, "clGetEventProfilingInfo")
            total += times[1].value - times[0].value
            self._good(self.cl.clReleaseEvent(event), "clReleaseEvent")
        self.events.clear()
        return total / 1e9

    def finish(self):
        """Waits for the queue."""
        self._good(self.cl.clFinish(self.queue), "clFinish")

    def seconds(self, action, turns):
        """Seconds of each of some equal actions, one after the other in the queue."""
        action()
        self.finish()
        begin = time.perf_counter()
        for _ in range(turns):
            action()
        self.finish()
        return (time.perf_counter() - begin) / turns


def figures():
    """GB/s of the runtime's copy and of a plain kernel, microseconds of a launch queued and finished, of a small read."""
    device = Device()
    buffers = [device.buffer(BYTES) for _ in range(2)]
    size, zero = ctypes.c_size_t(BYTES), ctypes.c_size_t(0)

    def own_copy():
        code = device.cl.clEnqueueCopyBuffer(device.queue, *buffers, zero, zero, size, 0, None, None)
        device._good(code, "clEnqueueCopyBuffer")

    copy, nothing = device.kernel("copy"), device.kernel("nothing")
    device.arguments(copy, *buffers, ctypes.c_int64(BYTES // 8))
    device.arguments(nothing, buffers[0])
    word = (ctypes.c_char * 8)()

    def finished():
        device.launch(nothing, 256)
        device.finish()

    def read():
        code = device.cl.clEnqueueReadBuffer(device.queue, buffers[0], 1, zero, ctypes.c_size_t(8), word, 0, None, None)
        device._good(code, "clEnqueueReadBuffer")

    moved = 2 * BYTES / 1e9
    return {
        "copy_gb_s": moved / device.seconds(own_copy, 20),
        "kernel_copy_gb_s": moved / device.seconds(lambda: device.launch(copy, BYTES // 8 // 4), 20),
        "launch_us": 1e6 * device.seconds(lambda: device.launch(nothing, 256), 2000),
        "launch_finish_us": 1e6 * device.seconds(finished, 500),
        "read_8_bytes_us": 1e6 * device.seconds(read, 500),
    }
