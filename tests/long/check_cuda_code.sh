#!/bin/sh
# Goal: the kernels that move memory load and store 16 bytes at once, attention
# multiplies on tensor cores, and no kernel spills registers, or a reason stands
# in the table.
# Method: each unit is compiled for sm_90 as the module is, ptxas says what it
# spilled, nvdisasm (or cuobjdump) what it made; both are held against the
# table. Two planted kernels show that the check can fail. Speed and conflicts
# of banks it cannot see. SKIP without nvcc or a disassembler.
#   NVCC, NVDISASM  where they are not in PATH, beside nvcc or in Triton's folder
# shellcheck source=tests/fences/common.sh
. "${srcdir:-$(dirname "$0")/../..}/tests/fences/common.sh"

# unit, kernel (a pattern of its mangled name), at least so many instructions:
# LDG.128, STG.128, HMMA; at most so many bytes spilled, and why.
table() {
    cat <<'ROWS'
vector       each_kernelILi4E.*10scale_each             1 1 0 0
vector       each_kernelILi4E.*8add_each                2 1 0 0
vector       each_kernelILi4E.*8sgd_each                2 2 0 0
vector       each_kernelILi4E.*10adamw_each             4 3 0 0
vector       each_kernelILi4E.*9clip_each               1 1 0 0
vector       each_kernelILi8E.*12convert_eachIfN        2 1 0 0
vector       each_kernelILi8E.*12convert_eachINS_4bf16E 1 2 0 0
vector       reduce_kernelILi4E.*8mix_eachIfLb0E        3 1 0 0
vector       reduce_kernelILi4E.*8mix_eachIfLb1E        2 1 0 0
vector       reduce_kernelILi8E.*8mix_eachINS_4bf16E    5 2 0 0
vector       reduce_kernelILi4E.*8sum_each              1 0 0 0
vector       reduce_kernelILi4E.*13distance_each        2 0 0 0
vector       reduce_kernelILi4E.*11finite_each          1 0 0 0
simple       each_kernelILi4E.*7sum_twoIfE              2 1 0 0
simple       each_kernelILi8E.*7sum_twoINS_4bf16E       2 1 0 0
simple       each_kernelILi4E.*9mask_eachIfE             1 1 0 0
simple       each_kernelILi8E.*9mask_eachINS_4bf16E      1 1 0 0
linear       each_kernelILi8E.*10slope_eachINS_4bf16E   2 1 0 0
linear       each_kernelILi4E.*10slope_eachIfE          2 1 0 0
linear       columns_kernelILi1ELi8E.*column_ofINS_4b   4 0 0 0
linear       columns_kernelILi1ELi4E.*column_ofIfE      4 0 0 0
norm         10row_kernelILb1ELi8ENS_4bf16E             5 1 0 0
norm         10row_kernelILb1ELi4EfE                    5 1 0 0
norm         15row_back_kernelILb1ELi8ENS_4bf16E        4 1 0 0
norm         15row_back_kernelILb1ELi4EfE               4 1 0 0
norm         columns_kernelILi2ELi8E.*gain_sumsINS_4b   8 0 0 0
norm         columns_kernelILi2ELi4E.*gain_sumsIf       8 0 0 0
norm         columns_kernelILi2ELi8E.*batch_sumsINS_4   4 0 0 0
norm         each_kernelILi8E.*11batch_applyINS_4bf16E  1 1 0 0
norm         each_kernelILi8E.*10batch_backINS_4bf16E   2 1 0 0
text         loss_kernelILi8ENS_4bf16E                  2 1 0 0
text         loss_kernelILi4EfE                         2 1 0 0
conv         each_kernelILi8E.*9mask_eachINS_4bf16E     2 1 0 0
cudnn        each_kernelILi8E.*11finish_eachINS_4bf16E  1 1 0 0
attention_mma 10mma_kernelILi64E                        3 0 64 0
attention_mma 10mma_kernelILi128E                       3 0 128 0
attention_mma 16mma_query_kernelILi64E                  4 0 96 0
attention_mma 16mma_query_kernelILi128E                 4 0 96 0
attention_mma 14mma_key_kernelILi64E                    4 0 128 0
attention_mma 14mma_key_kernelILi128E                   4 0 128 0
ROWS
}

find_nvcc() {
    for nvcc in "${NVCC:-}" nvcc /usr/local/cuda/bin/nvcc; do
        [ -z "$nvcc" ] || ! command -v "$nvcc" >/dev/null 2>&1 || return 0
    done
    skip "no nvcc"
}

# Triton carries both tools in its wheel.
find_disassembler() {
    triton=$(python3 -c 'import os, importlib.util as u
s = u.find_spec("triton")
print(os.path.join(os.path.dirname(s.origin), "backends/nvidia/bin"))' \
        2>/dev/null)
    beside=$(dirname "$(command -v "$nvcc")")
    for tool in "${NVDISASM:-nvdisasm}" cuobjdump "$beside/nvdisasm" \
        "$beside/cuobjdump" "${triton:-/nowhere}/nvdisasm"; do
        ! command -v "$tool" >/dev/null 2>&1 || return 0
    done
    skip "neither nvdisasm nor cuobjdump: name one in NVDISASM"
}

disassemble() {
    case $tool in
    *cuobjdump) "$tool" -sass "$1" ;;
    *) "$tool" -c "$1" ;;
    esac
}

# compile SOURCE [FLAG...]: counts of each kernel to $scratch/counts, a line
# "kernel registers spilled LDG.128 LDG STG.128 STG HMMA".
compile() {
    source=$1
    shift
    "$nvcc" -std=c++17 -O3 --extended-lambda -gencode arch=compute_90,code=sm_90 \
        -DPACKAGE_VERSION='"0"' -I"$top/include" -I"$top" -I"$top/src/training/cuda" \
        -Xptxas -v "$@" -cubin -o "$scratch/unit.cubin" "$source" \
        >"$scratch/ptxas" 2>&1 || {
        cat "$scratch/ptxas" >&2
        fail "$source does not compile"
        return 1
    }
    disassemble "$scratch/unit.cubin" >"$scratch/sass" || return 1
    awk '
        FNR == 1 { file++ }
        file == 1 && /Function properties for/ { name = $NF }
        file == 1 && /spill stores/ { spilled[name] = $5 + $9 }
        file == 1 && /Used [0-9]+ registers/ {
            for (i = 1; i < NF; i++)
                if ($i == "Used") registers[name] = $(i + 1)
        }
        file == 2 && (/\.section[ \t]+\.text\./ || /Function : /) {
            name = $0
            sub(/.*(\.text\.|Function : )/, "", name)
            sub(/[,"[:space:]].*/, "", name)
        }
        file == 2 && /LDG\./ { loads[name]++; wide_loads[name] += /LDG[.A-Z0-9]*\.128/ }
        file == 2 && /STG\./ { stores[name]++; wide_stores[name] += /STG[.A-Z0-9]*\.128/ }
        file == 2 && /HMMA/ { products[name]++ }
        END {
            for (name in registers)
                print name, registers[name], spilled[name] + 0,
                    wide_loads[name] + 0, loads[name] + 0,
                    wide_stores[name] + 0, stores[name] + 0, products[name] + 0
        }' "$scratch/ptxas" "$scratch/sass" | sort >"$scratch/counts"
    [ -s "$scratch/counts" ] || fail "$source: no kernel was found"
}

# check UNIT ROWS: $scratch/counts against the rows of UNIT; prints them.
check() {
    awk -v unit="$1" '
        function breach(text) {
            printf "%s: %s: %s\n", unit, name, text
            breaches++
        }
        FNR == 1 { file++ }
        file == 1 { if ($1 == unit) { row[++rows] = $2; want[rows] = $0 } next }
        {
            name = $1
            allowed = 0
            for (r = 1; r <= rows; r++) {
                if (name !~ row[r]) continue
                found[r] = 1
                split(want[r], w, " ")
                allowed = w[6]
                if ($4 < w[3]) breach("LDG.128: " $4 " of " $5 ", wanted " w[3])
                if ($6 < w[4]) breach("STG.128: " $6 " of " $7 ", wanted " w[4])
                if ($8 < w[5]) breach("HMMA: " $8 ", wanted " w[5])
                printf "%-14s %-44s %4d %6d %4d/%-3d %4d/%-3d %5d\n", unit,
                    row[r], $2, $3, $4, $5, $6, $7, $8
            }
            if ($3 > allowed) breach($3 " bytes spilled, allowed " allowed)
        }
        END {
            for (r = 1; r <= rows; r++)
                if (!found[r]) { name = row[r]; breach("no such kernel") }
            exit breaches > 0
        }' "$2" "$scratch/counts"
}

find_nvcc
find_disassembler
table >"$scratch/table"

# Canaries: a float at a time, and more values than registers.
cat >"$scratch/planted.cu" <<'UNIT'
__global__ void narrow_planted(const float *x, float *y)
{
    y[threadIdx.x] = x[threadIdx.x];
}
__global__ void crowded_planted(const float4 *x, float4 *y)
{
    float4 v[32];
    for (int i = 0; i < 32; i++)
        v[i] = x[threadIdx.x + i * 1024];
    __syncthreads();
    for (int i = 0; i < 32; i++)
        y[threadIdx.x * 32 + i] = v[31 - i];
}
UNIT
printf '%s\n' 'narrow narrow_planted 1 0 0 0' 'crowded crowded_planted 1 1 0 0' \
    'other nobody_planted 0 0 0 0' >"$scratch/planted"
compile "$scratch/planted.cu" || finish
check crowded "$scratch/planted" >"$scratch/out" ||
    fail "the planted kernels: $(cat "$scratch/out")"
canary check narrow "$scratch/planted"
canary check other "$scratch/planted"
compile "$scratch/planted.cu" -maxrregcount 32 || finish
canary check crowded "$scratch/planted"
grep -q 'bytes spilled' "$scratch/canary.out" ||
    fail "the crowded canary died of something else: $(cat "$scratch/canary.out")"

"$nvcc" --version | tail -n 1
printf '%-14s %-44s %4s %6s %8s %8s %5s\n' unit kernel regs spills \
    LDG.128 STG.128 HMMA
for unit in attention attention_mma conv cudnn linear norm products simple \
    text vector; do
    compile "$top/src/training/cuda/$unit.cu" || continue
    check "$unit" "$scratch/table" || fail "$unit"
done
finish
