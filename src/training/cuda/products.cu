/* See products.cuh. cuBLAS counts column-major: our row-major C (m, n) is its
 * C^T (n, m) = B^T A^T, so B goes in first. For each form of product the first
 * of the library's proposals is kept; KITH_CUDA_PRODUCTS=own leaves it all to
 * our kernel. */
#include "products.cuh"

#include "state.cuh"
#include "tile.cuh"

#ifdef __CUDACC__
#include <cublasLt.h>
#include <dlfcn.h>
#include <map>
#include <stdlib.h>
#include <string.h>
#include <tuple>

namespace gpu
{
#define LT_CALLS(X)                                                            \
    X(cublasLtCreate)                                                          \
    X(cublasLtMatmulDescCreate)                                                \
    X(cublasLtMatmulDescDestroy)                                               \
    X(cublasLtMatmulDescSetAttribute)                                          \
    X(cublasLtMatrixLayoutCreate)                                              \
    X(cublasLtMatrixLayoutDestroy)                                             \
    X(cublasLtMatmulPreferenceCreate)                                          \
    X(cublasLtMatmulPreferenceDestroy)                                         \
    X(cublasLtMatmulPreferenceSetAttribute)                                    \
    X(cublasLtMatmulAlgoGetHeuristic)                                          \
    X(cublasLtMatmul)

static struct {
#define X(name) decltype(&::name) name;
    LT_CALLS(X)
#undef X
    cublasLtHandle_t handle;
    bool own; /* our kernel was asked for */
} lt;

static const size_t workspace_bytes = (size_t)32 << 20;

static bool open_calls(void *library)
{
#define X(name)                                                                \
    lt.name = (decltype(lt.name))dlsym(library, #name);                        \
    if (lt.name == nullptr)                                                    \
        return false;
    LT_CALLS(X)
#undef X
    return true;
}

const char *products_missing()
{
    const char *const told = getenv("KITH_CUDA_PRODUCTS");
    lt.own = told != nullptr && strcmp(told, "own") == 0;
    if (lt.own)
        return nullptr;
    static const char *const names[] = {"libcublasLt.so.13",
                                        "libcublasLt.so.12", "libcublasLt.so",
                                        "/usr/local/cuda/lib64/libcublasLt.so"};
    for (const char *name : names) {
        void *const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        if (library != nullptr)
            return open_calls(library)
                       ? nullptr
                       : "libcublasLt lacks functions that are needed: take "
                         "CUDA 12 or 13";
    }
    return "libcublasLt.so does not load: install cuBLAS of CUDA 12 or 13, or "
           "name its folder in LD_LIBRARY_PATH";
}

static bool told(cublasStatus_t status)
{
    if (status == CUBLAS_STATUS_SUCCESS)
        return true;
    if (status == CUBLAS_STATUS_EXECUTION_FAILED ||
        status == CUBLAS_STATUS_INTERNAL_ERROR)
        check(cudaGetLastError(), "a product");
    return false;
}

/* Two products of one form take the same kernel. */
typedef std::tuple<int, size_t, size_t, size_t, size_t, size_t, size_t, int,
                   bool>
    form;

struct plan {
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t a, b, c;
    cublasLtMatmulAlgo_t algorithm;
    size_t workspace;
    bool good;
};

static cudaDataType_t type_of(element e)
{
    return e == SINGLE ? CUDA_R_32F : CUDA_R_16BF;
}

template <typename V>
static bool set(cublasLtMatmulDesc_t how, cublasLtMatmulDescAttributes_t what,
                const V &v)
{
    return told(lt.cublasLtMatmulDescSetAttribute(how, what, &v, sizeof v));
}

static cublasLtEpilogue_t epilogue_of(const product &p)
{
    const bool biased = p.bias != nullptr;
    switch (p.activation) {
    case KITH_ACTIVATION_RELU:
        return biased ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_RELU;
    case KITH_ACTIVATION_GELU:
        if (p.pre == nullptr)
            return biased ? CUBLASLT_EPILOGUE_GELU_BIAS
                          : CUBLASLT_EPILOGUE_GELU;
        return biased ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS
                      : CUBLASLT_EPILOGUE_GELU_AUX;
    default:
        return biased ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
    }
}

/* Pointers of the epilogue change from call to call. */
static bool set_pointers(const plan *found, const product &p)
{
    const int64_t width = (int64_t)p.n;
    if (p.bias != nullptr &&
        !set(found->how, CUBLASLT_MATMUL_DESC_BIAS_POINTER, p.bias))
        return false;
    return p.pre == nullptr ||
           (set(found->how, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, p.pre) &&
            set(found->how, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, width));
}

static bool describe(plan *made, const product &p)
{
    const cublasOperation_t first = p.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasOperation_t second = p.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N;
    const cublasLtEpilogue_t epilogue = epilogue_of(p);
    return told(lt.cublasLtMatmulDescCreate(&made->how, CUBLAS_COMPUTE_32F,
                                            CUDA_R_32F)) &&
           set(made->how, CUBLASLT_MATMUL_DESC_TRANSA, first) &&
           set(made->how, CUBLASLT_MATMUL_DESC_TRANSB, second) &&
           set(made->how, CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue) &&
           set_pointers(made, p) &&
           told(lt.cublasLtMatrixLayoutCreate(
               &made->b, type_of(p.in), p.transpose_b ? p.k : p.n,
               p.transpose_b ? p.n : p.k, (int64_t)p.b_stride)) &&
           told(lt.cublasLtMatrixLayoutCreate(
               &made->a, type_of(p.in), p.transpose_a ? p.m : p.k,
               p.transpose_a ? p.k : p.m, (int64_t)p.a_stride)) &&
           told(lt.cublasLtMatrixLayoutCreate(&made->c, type_of(p.out), p.n,
                                              p.m, (int64_t)p.c_stride));
}

static void drop(plan *made)
{
    if (made->how != nullptr)
        (void)lt.cublasLtMatmulDescDestroy(made->how);
    for (cublasLtMatrixLayout_t layout : {made->a, made->b, made->c})
        if (layout != nullptr)
            (void)lt.cublasLtMatrixLayoutDestroy(layout);
    made->how = nullptr;
    made->a = made->b = made->c = nullptr;
}

static bool choose(plan *made, bool wide)
{
    cublasLtMatmulPreference_t wish = nullptr;
    cublasLtMatmulHeuristicResult_t best;
    const size_t most = workspace_bytes;
    const uint32_t alignment = wide ? 16 : 4;
    int found = 0;
    const cublasLtMatmulPreferenceAttributes_t sides[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    bool good = told(lt.cublasLtMatmulPreferenceCreate(&wish)) &&
                told(lt.cublasLtMatmulPreferenceSetAttribute(
                    wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                    sizeof most));
    for (const auto side : sides)
        good = good && told(lt.cublasLtMatmulPreferenceSetAttribute(
                           wish, side, &alignment, sizeof alignment));
    good = good &&
           told(lt.cublasLtMatmulAlgoGetHeuristic(lt.handle, made->how, made->b,
                                                  made->a, made->c, made->c,
                                                  wish, 1, &best, &found)) &&
           found > 0;
    if (good) {
        made->algorithm = best.algo;
        made->workspace = best.workspaceSize;
    }
    if (wish != nullptr)
        (void)lt.cublasLtMatmulPreferenceDestroy(wish);
    return good;
}

static plan *plan_of(const product &p, bool wide)
{
    static std::map<form, plan> plans;
    const int kinds = (p.transpose_a ? 1 : 0) | (p.transpose_b ? 2 : 0) |
                      (p.in == HALF ? 4 : 0) | (p.out == HALF ? 8 : 0) |
                      (wide ? 16 : 0);
    const int tail = p.activation * 4 + (p.bias != nullptr ? 1 : 0) +
                     (p.pre != nullptr ? 2 : 0);
    const form key(kinds, p.m, p.n, p.k, p.a_stride, p.b_stride, p.c_stride,
                   tail, p.beta != 0);
    const auto at = plans.find(key);
    if (at != plans.end())
        return at->second.good ? &at->second : nullptr;
    plan *const made = &plans[key];
    *made = plan();
    made->good = describe(made, p) && choose(made, wide);
    if (!made->good)
        drop(made);
    return made->good ? made : nullptr;
}

static const char *why_own()
{
    return lt.own ? "KITH_CUDA_PRODUCTS=own" : "cuBLASLt refuses it";
}

static bool run_library(const product &p)
{
    if (lt.own)
        return false;
    if (lt.handle == nullptr && !told(lt.cublasLtCreate(&lt.handle)))
        return false;
    const bool wide = all_aligned(p.a, p.b, p.c, p.bias, p.pre);
    const plan *const found = plan_of(p, wide);
    if (found == nullptr || !set_pointers(found, p))
        return false;
    void *const workspace = scratch_of(SCRATCH_PRODUCT, workspace_bytes);
    return workspace != nullptr &&
           told(lt.cublasLtMatmul(lt.handle, found->how, &p.alpha, p.b,
                                  found->b, p.a, found->a, &p.beta, p.c,
                                  found->c, p.c, found->c, &found->algorithm,
                                  workspace, workspace_bytes, stream()));
}
} // namespace gpu
#else
namespace gpu
{
const char *products_missing()
{
    return nullptr;
}

static const char *why_own()
{
    return "cuBLASLt is not here";
}

static bool run_library(const product &)
{
    return false;
}
} // namespace gpu
#endif

namespace gpu
{
/* Strides that were left out are those of matrices that lie close. */
static product closed(product p)
{
    p.a_stride = p.a_stride > 0 ? p.a_stride : p.transpose_a ? p.m : p.k;
    p.b_stride = p.b_stride > 0 ? p.b_stride : p.transpose_b ? p.k : p.n;
    p.c_stride = p.c_stride > 0 ? p.c_stride : p.n;
    return p;
}

/* Kernels for tensor cores load 16 bytes: eight of bfloat16, four of float32.
 * Float32 products use none. */
static bool even(const product &p)
{
    const size_t each = p.out == HALF ? 8 : 4;
    return p.in == SINGLE ||
           (p.a_stride % 8 == 0 && p.b_stride % 8 == 0 &&
            p.c_stride % each == 0 && all_aligned(p.a, p.b, p.c));
}

bool library_product(const product &asked)
{
    const product p = closed(asked);
    if (p.m == 0 || p.n == 0 || p.k == 0 || has_failed())
        return false;
    if (!even(p))
        took(SLOW_ROWS,
             "a bfloat16 product (%zu, %zu, %zu) whose rows do not begin at "
             "multiples of 16 bytes: take sizes that 8 divides",
             p.m, p.n, p.k);
    if (run_library(p))
        return true;
    if (!has_failed())
        took(SLOW_PRODUCT,
             "a product (%zu, %zu, %zu) by the kernel of our own: %s", p.m, p.n,
             p.k, why_own());
    return false;
}

void gemm(const struct kith_gemm *g)
{
    const call own;
    if (!own.well())
        return;
    product p = {};
    p.transpose_a = g->transpose_a;
    p.transpose_b = g->transpose_b;
    p.m = g->m;
    p.n = g->n;
    p.k = g->k;
    p.alpha = (float)g->alpha;
    p.beta = (float)g->beta;
    p.a = g->a;
    p.b = g->b;
    p.c = g->c;
    p.in = p.out = SINGLE;
    p.activation = KITH_ACTIVATION_NONE;
    if (library_product(p))
        return;
    tile_product("g->a product", g->m, g->n, g->k,
                 matrix<float>{(const float *)g->a, g->transpose_a ? 1 : g->k,
                               g->transpose_a ? g->m : 1},
                 matrix<float>{(const float *)g->b, g->transpose_b ? 1 : g->n,
                               g->transpose_b ? g->k : 1},
                 put<float>{(float *)g->c, nullptr, nullptr, g->n,
                            (float)g->alpha, (float)g->beta,
                            KITH_ACTIVATION_NONE});
}
} // namespace gpu
