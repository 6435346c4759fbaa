"""Made by `python -m bh._tools.stubs`; a test compares."""

import builtins
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, overload

from numpy.typing import ArrayLike, DTypeLike, NDArray

from . import fft as fft, linalg as linalg, random as random
from numpy import (
    False_ as False_,
    ScalarType as ScalarType,
    True_ as True_,
    __array_namespace_info__ as __array_namespace_info__,
    abs as abs,
    absolute as absolute,
    acos as acos,
    acosh as acosh,
    add as add,
    all as all,
    allclose as allclose,
    amax as amax,
    amin as amin,
    angle as angle,
    any as any,
    append as append,
    apply_along_axis as apply_along_axis,
    apply_over_axes as apply_over_axes,
    arange as arange,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    argmax as argmax,
    argmin as argmin,
    argpartition as argpartition,
    argsort as argsort,
    argwhere as argwhere,
    around as around,
    array as array,
    array2string as array2string,
    array_equal as array_equal,
    array_equiv as array_equiv,
    array_repr as array_repr,
    array_split as array_split,
    array_str as array_str,
    asanyarray as asanyarray,
    asarray as asarray,
    asarray_chkfinite as asarray_chkfinite,
    ascontiguousarray as ascontiguousarray,
    asfortranarray as asfortranarray,
    asin as asin,
    asinh as asinh,
    asmatrix as asmatrix,
    astype as astype,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    average as average,
    bartlett as bartlett,
    base_repr as base_repr,
    binary_repr as binary_repr,
    bincount as bincount,
    bitwise_and as bitwise_and,
    bitwise_count as bitwise_count,
    bitwise_invert as bitwise_invert,
    bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not,
    bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift,
    bitwise_xor as bitwise_xor,
    blackman as blackman,
    block as block,
    bmat as bmat,
    bool as bool,
    bool_ as bool_,
    broadcast as broadcast,
    broadcast_arrays as broadcast_arrays,
    broadcast_shapes as broadcast_shapes,
    broadcast_to as broadcast_to,
    busday_count as busday_count,
    busday_offset as busday_offset,
    busdaycalendar as busdaycalendar,
    byte as byte,
    bytes_ as bytes_,
    c_ as c_,
    can_cast as can_cast,
    cbrt as cbrt,
    cdouble as cdouble,
    ceil as ceil,
    char as char,
    character as character,
    choose as choose,
    clip as clip,
    clongdouble as clongdouble,
    column_stack as column_stack,
    common_type as common_type,
    complex128 as complex128,
    complex256 as complex256,
    complex64 as complex64,
    complexfloating as complexfloating,
    compress as compress,
    concat as concat,
    concatenate as concatenate,
    conj as conj,
    conjugate as conjugate,
    convolve as convolve,
    copy as copy,
    copysign as copysign,
    copyto as copyto,
    core as core,
    corrcoef as corrcoef,
    correlate as correlate,
    cos as cos,
    cosh as cosh,
    count_nonzero as count_nonzero,
    cov as cov,
    cross as cross,
    csingle as csingle,
    ctypeslib as ctypeslib,
    cumprod as cumprod,
    cumsum as cumsum,
    cumulative_prod as cumulative_prod,
    cumulative_sum as cumulative_sum,
    datetime64 as datetime64,
    datetime_as_string as datetime_as_string,
    datetime_data as datetime_data,
    deg2rad as deg2rad,
    degrees as degrees,
    delete as delete,
    diag as diag,
    diag_indices as diag_indices,
    diag_indices_from as diag_indices_from,
    diagflat as diagflat,
    diagonal as diagonal,
    diff as diff,
    digitize as digitize,
    divide as divide,
    divmod as divmod,
    dot as dot,
    double as double,
    dsplit as dsplit,
    dstack as dstack,
    dtype as dtype,
    dtypes as dtypes,
    e as e,
    ediff1d as ediff1d,
    einsum as einsum,
    einsum_path as einsum_path,
    emath as emath,
    empty as empty,
    empty_like as empty_like,
    equal as equal,
    errstate as errstate,
    euler_gamma as euler_gamma,
    exceptions as exceptions,
    exp as exp,
    exp2 as exp2,
    expand_dims as expand_dims,
    expm1 as expm1,
    extract as extract,
    eye as eye,
    f2py as f2py,
    fabs as fabs,
    fill_diagonal as fill_diagonal,
    finfo as finfo,
    fix as fix,
    flatiter as flatiter,
    flatnonzero as flatnonzero,
    flexible as flexible,
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    float128 as float128,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    float_power as float_power,
    floating as floating,
    floor as floor,
    floor_divide as floor_divide,
    fmax as fmax,
    fmin as fmin,
    fmod as fmod,
    format_float_positional as format_float_positional,
    format_float_scientific as format_float_scientific,
    frexp as frexp,
    from_dlpack as from_dlpack,
    frombuffer as frombuffer,
    fromfile as fromfile,
    fromfunction as fromfunction,
    fromiter as fromiter,
    frompyfunc as frompyfunc,
    fromregex as fromregex,
    fromstring as fromstring,
    full as full,
    full_like as full_like,
    gcd as gcd,
    generic as generic,
    genfromtxt as genfromtxt,
    geomspace as geomspace,
    get_include as get_include,
    get_printoptions as get_printoptions,
    getbufsize as getbufsize,
    geterr as geterr,
    geterrcall as geterrcall,
    gradient as gradient,
    greater as greater,
    greater_equal as greater_equal,
    half as half,
    hamming as hamming,
    hanning as hanning,
    heaviside as heaviside,
    histogram as histogram,
    histogram2d as histogram2d,
    histogram_bin_edges as histogram_bin_edges,
    histogramdd as histogramdd,
    hsplit as hsplit,
    hstack as hstack,
    hypot as hypot,
    i0 as i0,
    identity as identity,
    iinfo as iinfo,
    imag as imag,
    index_exp as index_exp,
    indices as indices,
    inexact as inexact,
    inf as inf,
    inner as inner,
    insert as insert,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    int8 as int8,
    int_ as int_,
    intc as intc,
    integer as integer,
    interp as interp,
    intersect1d as intersect1d,
    intp as intp,
    invert as invert,
    is_busday as is_busday,
    isclose as isclose,
    iscomplex as iscomplex,
    iscomplexobj as iscomplexobj,
    isdtype as isdtype,
    isfinite as isfinite,
    isfortran as isfortran,
    isin as isin,
    isinf as isinf,
    isnan as isnan,
    isnat as isnat,
    isneginf as isneginf,
    isposinf as isposinf,
    isreal as isreal,
    isrealobj as isrealobj,
    isscalar as isscalar,
    issubdtype as issubdtype,
    iterable as iterable,
    ix_ as ix_,
    kaiser as kaiser,
    kron as kron,
    lcm as lcm,
    ldexp as ldexp,
    left_shift as left_shift,
    less as less,
    less_equal as less_equal,
    lexsort as lexsort,
    lib as lib,
    linspace as linspace,
    little_endian as little_endian,
    load as load,
    loadtxt as loadtxt,
    log as log,
    log10 as log10,
    log1p as log1p,
    log2 as log2,
    logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    logspace as logspace,
    long as long,
    longdouble as longdouble,
    longlong as longlong,
    ma as ma,
    mask_indices as mask_indices,
    matmul as matmul,
    matrix as matrix,
    matrix_transpose as matrix_transpose,
    matvec as matvec,
    max as max,
    maximum as maximum,
    may_share_memory as may_share_memory,
    mean as mean,
    median as median,
    memmap as memmap,
    meshgrid as meshgrid,
    mgrid as mgrid,
    min as min,
    min_scalar_type as min_scalar_type,
    minimum as minimum,
    mintypecode as mintypecode,
    mod as mod,
    modf as modf,
    moveaxis as moveaxis,
    multiply as multiply,
    nan as nan,
    nan_to_num as nan_to_num,
    nanargmax as nanargmax,
    nanargmin as nanargmin,
    nancumprod as nancumprod,
    nancumsum as nancumsum,
    nanmax as nanmax,
    nanmean as nanmean,
    nanmedian as nanmedian,
    nanmin as nanmin,
    nanpercentile as nanpercentile,
    nanprod as nanprod,
    nanquantile as nanquantile,
    nanstd as nanstd,
    nansum as nansum,
    nanvar as nanvar,
    ndarray as ndarray,
    ndenumerate as ndenumerate,
    ndim as ndim,
    ndindex as ndindex,
    nditer as nditer,
    negative as negative,
    nested_iters as nested_iters,
    newaxis as newaxis,
    nextafter as nextafter,
    nonzero as nonzero,
    not_equal as not_equal,
    number as number,
    object_ as object_,
    ogrid as ogrid,
    ones as ones,
    ones_like as ones_like,
    outer as outer,
    packbits as packbits,
    pad as pad,
    partition as partition,
    percentile as percentile,
    permute_dims as permute_dims,
    pi as pi,
    piecewise as piecewise,
    place as place,
    poly as poly,
    poly1d as poly1d,
    polyadd as polyadd,
    polyder as polyder,
    polydiv as polydiv,
    polyfit as polyfit,
    polyint as polyint,
    polymul as polymul,
    polynomial as polynomial,
    polysub as polysub,
    polyval as polyval,
    positive as positive,
    pow as pow,
    power as power,
    printoptions as printoptions,
    prod as prod,
    promote_types as promote_types,
    ptp as ptp,
    put as put,
    put_along_axis as put_along_axis,
    putmask as putmask,
    quantile as quantile,
    r_ as r_,
    rad2deg as rad2deg,
    radians as radians,
    ravel as ravel,
    ravel_multi_index as ravel_multi_index,
    real as real,
    real_if_close as real_if_close,
    rec as rec,
    recarray as recarray,
    reciprocal as reciprocal,
    record as record,
    remainder as remainder,
    repeat as repeat,
    require as require,
    reshape as reshape,
    resize as resize,
    result_type as result_type,
    right_shift as right_shift,
    rint as rint,
    roll as roll,
    rollaxis as rollaxis,
    roots as roots,
    rot90 as rot90,
    round as round,
    row_stack as row_stack,
    s_ as s_,
    save as save,
    savetxt as savetxt,
    savez as savez,
    savez_compressed as savez_compressed,
    sctypeDict as sctypeDict,
    searchsorted as searchsorted,
    select as select,
    set_printoptions as set_printoptions,
    setbufsize as setbufsize,
    setdiff1d as setdiff1d,
    seterr as seterr,
    seterrcall as seterrcall,
    setxor1d as setxor1d,
    shape as shape,
    shares_memory as shares_memory,
    short as short,
    show_config as show_config,
    show_runtime as show_runtime,
    sign as sign,
    signbit as signbit,
    signedinteger as signedinteger,
    sin as sin,
    sinc as sinc,
    single as single,
    sinh as sinh,
    size as size,
    sort as sort,
    sort_complex as sort_complex,
    spacing as spacing,
    split as split,
    sqrt as sqrt,
    square as square,
    squeeze as squeeze,
    stack as stack,
    std as std,
    str_ as str_,
    strings as strings,
    subtract as subtract,
    sum as sum,
    swapaxes as swapaxes,
    take as take,
    take_along_axis as take_along_axis,
    tan as tan,
    tanh as tanh,
    tensordot as tensordot,
    test as test,
    testing as testing,
    tile as tile,
    timedelta64 as timedelta64,
    trace as trace,
    transpose as transpose,
    trapezoid as trapezoid,
    tri as tri,
    tril as tril,
    tril_indices as tril_indices,
    tril_indices_from as tril_indices_from,
    trim_zeros as trim_zeros,
    triu as triu,
    triu_indices as triu_indices,
    triu_indices_from as triu_indices_from,
    true_divide as true_divide,
    trunc as trunc,
    typecodes as typecodes,
    typename as typename,
    typing as typing,
    ubyte as ubyte,
    ufunc as ufunc,
    uint as uint,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    uint8 as uint8,
    uintc as uintc,
    uintp as uintp,
    ulong as ulong,
    ulonglong as ulonglong,
    union1d as union1d,
    unique as unique,
    unique_all as unique_all,
    unique_counts as unique_counts,
    unique_inverse as unique_inverse,
    unique_values as unique_values,
    unpackbits as unpackbits,
    unravel_index as unravel_index,
    unsignedinteger as unsignedinteger,
    unstack as unstack,
    unwrap as unwrap,
    ushort as ushort,
    vander as vander,
    var as var,
    vdot as vdot,
    vecdot as vecdot,
    vecmat as vecmat,
    vectorize as vectorize,
    void as void,
    vsplit as vsplit,
    vstack as vstack,
    where as where,
    zeros as zeros,
    zeros_like as zeros_like,
)

_P = ParamSpec("_P")
_R = TypeVar("_R")
_F = TypeVar("_F", bound=Callable[..., Any])
_Axes: TypeAlias = int | None | Sequence[Any] | dict[str, Any]
_Data: TypeAlias = ArrayLike | str | Iterable[Any] | Callable[[], Iterable[Any]]

__all__: list[str]
__version__: str
__array_api_version__: str

class Error(RuntimeError): ...
class BoundsError(Error, IndexError): ...
class CheckpointError(Error): ...
class FallbackError(RuntimeError): ...
class FallbackWarning(UserWarning): ...

class GraphError(RuntimeError):
    def __init__(self, stage: str, piece: int, where: str, error: BaseException) -> None: ...

class Stack:
    def __init__(self, name: str | None = None) -> None: ...
    @property
    def name(self) -> str: ...
    def activate(self) -> Stack: ...
    def flush(self, wait: builtins.bool = True) -> None: ...

class using(AbstractContextManager[None]):
    def __init__(self, name: str) -> None: ...
    def __exit__(self, *error: object) -> None: ...

class _Jitted(Generic[_P, _R]):
    traces: int
    plain: int
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...

class custom_vjp(Generic[_P, _R]):
    def __init__(self, fun: Callable[_P, _R]) -> None: ...
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _R: ...
    def defvjp(self, fwd: Callable[..., tuple[Any, Any]], bwd: Callable[..., tuple[Any, ...]]) -> None: ...

class custom_jvp(custom_vjp[_P, _R]):
    def defjvp(self, rule: _F) -> _F: ...

class _Live:
    @property
    def address(self) -> str: ...

class extension_method:
    library: str
    component: str
    def __init__(self, name: str, library: str | PathLike[str], component: str = "ve-cpu") -> None: ...
    @overload
    def __call__(self, *inputs: ArrayLike, out: None = None) -> NDArray[Any]: ...
    @overload
    def __call__(self, *inputs: ArrayLike, out: _R) -> _R: ...

class _Graph:
    counters: Any
    def run(self) -> Any: ...
    def __rshift__(self, other: _Graph) -> _Graph: ...
    def __iter__(self) -> Iterator[Any]: ...

def check(*checks: str) -> None: ...
def check_grad(fun: Callable[..., Any], *args: Any, argnums: int | tuple[int, ...] = 0, step: float | None = None, rtol: float = 1e-05, seed: int = 0) -> float: ...
def checkpoint(path: str | PathLike[str], values: Mapping[str, Any] | None = None, /, **named: Any) -> None: ...
def devices() -> dict[str, list[str]]: ...
def digits(watch: builtins.bool | None = None) -> list[dict[str, Any]]: ...
def narrow(function: Callable[..., Any], *args: Any, least: builtins.float = 6.0, **named: Any) -> list[dict[str, Any]]: ...
def doctor(form: Literal["text", "json", "csv"] = "text", watch: builtins.bool = False) -> str: ...
def eager(on: builtins.bool = True) -> None: ...
def explain(array: ndarray | None = None) -> Any: ...
def fallback(mode: Literal["warn", "error", "silent"]) -> AbstractContextManager[None]: ...
def flush(wait: builtins.bool = True) -> None: ...
def fold(function: Callable[[Any, Any], Any], initial: Any, *arrays: ArrayLike, axis: int | tuple[int, ...] | None = None, keepdims: builtins.bool = False) -> Any: ...
@overload
def grad(fun: Callable[_P, Any], argnums: int = 0, has_aux: Literal[False] = False, memory: float | str | None = None, disk: float | str | None = None) -> Callable[_P, NDArray[Any]]: ...
@overload
def grad(fun: Callable[_P, Any], argnums: int | tuple[int, ...] = 0, has_aux: builtins.bool = False, memory: float | str | None = None, disk: float | str | None = None) -> Callable[_P, Any]: ...
def hvp(fun: Callable[..., Any], primals: Any, tangents: Any) -> Any: ...
def info(object: Any = None, maxwidth: int = 76, output: Any = None, toplevel: str = "numpy") -> str: ...
def jacobian(fun: Callable[_P, Any], argnums: int = 0) -> Callable[_P, NDArray[Any]]: ...
@overload
def jit(function: Callable[_P, _R], *, traced: str | Iterable[str] = (), static: str | Iterable[str] = ()) -> _Jitted[_P, _R]: ...
@overload
def jit(function: None = None, *, traced: str | Iterable[str] = (), static: str | Iterable[str] = ()) -> Callable[[Callable[_P, _R]], _Jitted[_P, _R]]: ...
def jvp(fun: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], has_aux: builtins.bool = False) -> tuple[Any, ...]: ...
def live() -> _Live: ...
def load_ipython_extension(shell: Any) -> None: ...
def map_blocks(function: Callable[..., Any], *arrays: ArrayLike, halo: int = 0, dtype: DTypeLike | None = None) -> NDArray[Any]: ...
def memory_limit() -> int: ...
def parallel(function: Callable[..., Any], shape: int | tuple[int, ...]) -> NDArray[Any]: ...
def profile() -> Any: ...
def rank() -> int: ...
def ranks() -> int: ...
def restore(path: str | PathLike[str]) -> dict[str, Any]: ...
def sink(function: Callable[[Any], object], *, stack: str | None = None, takes: Any = None, ahead: int = 2, name: str | None = None) -> _Graph: ...
def source(pieces: _Data, *, rows: int = 1048576, gives: Any = None, name: str | None = None) -> _Graph: ...
def stacks() -> list[str]: ...
def stop_gradient(x: _R) -> _R: ...
def stream(function: Callable[[Any], _R], source: _Data, rows: int = 1048576) -> Iterator[_R]: ...
def task(function: Callable[..., Any], *, stack: str | None = None, takes: Any = None, gives: Any = None, rate: tuple[int, int] = (1, 1), ahead: int | None = None, name: str | None = None) -> _Graph: ...
def threads(number: int | None = None) -> int: ...
@overload
def value_and_grad(fun: Callable[_P, _R], argnums: int = 0, has_aux: Literal[False] = False, memory: float | str | None = None, disk: float | str | None = None) -> Callable[_P, tuple[_R, NDArray[Any]]]: ...
@overload
def value_and_grad(fun: Callable[_P, _R], argnums: int | tuple[int, ...] = 0, has_aux: builtins.bool = False, memory: float | str | None = None, disk: float | str | None = None) -> Callable[_P, tuple[_R, Any]]: ...
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: builtins.bool = False, memory: float | str | None = None, disk: float | str | None = None) -> tuple[Any, ...]: ...
def vmap(fun: Callable[_P, _R], in_axes: _Axes = 0, out_axes: _Axes = 0) -> Callable[_P, _R]: ...
def wait(*arrays: ndarray) -> None: ...
