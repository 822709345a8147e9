# shellcheck shell=sh disable=SC2034,SC2154
# Finds cuBLAS, cuBLASLt and cuDNN for run.sh. Sourced, never run.
#
# A library is looked for where the loader looks, in the folder of the CUDA
# toolkit, then in the wheels that PyTorch brings (site-packages/nvidia/*); a
# header in the toolkit, in the system's folders, then in the wheels. Needs cuda
# (the toolkit's folder), python and work (a folder); calls row.
#
# Sets library_path, folders that the loader must be told, include, a folder
# with the headers that only wheels hold, and without_cudnn (1: no header).

# wheel_folders lib|include
wheel_folders() {
    "$python" -c 'import glob, sys
for path in sys.path:
    print(*sorted(glob.glob(path + "/nvidia/*/" + sys.argv[1])), sep="\n")' \
        "$1" 2>/dev/null | sed '/^$/d'
}

# first_with FILE FOLDERS: the first folder, of one a line, that holds the file.
first_with() {
    printf '%s\n' "$2" | while read -r folder; do
        if [ -n "$folder" ] && [ -e "$folder/$1" ]; then
            printf '%s\n' "$folder"
            break
        fi
    done
}

loader_folders() {
    printf '%s\n' "${LD_LIBRARY_PATH:-}" | tr ':' '\n'
}

# known_to_loader FILE: the folder in the loader's cache.
known_to_loader() {
    PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null |
        awk -v name="$1" '$1 == name { sub("/[^/]*$", "", $NF); print $NF; exit }'
}

# find_library NAME VERDICT WITHOUT FILE...: a row; the verdict and what follows
# from its absence where none of the files is anywhere.
find_library() {
    name=$1 verdict=$2 without=$3
    shift 3
    for file; do
        folder=$(known_to_loader "$file")
        [ -n "$folder" ] || folder=$(first_with "$file" "$(loader_folders)")
        [ -z "$folder" ] || {
            row libraries "$name" 'loader path' '' "$folder/$file" ok
            return
        }
    done
    for file; do
        from="CUDA's folder, or the driver's"
        folder=$(first_with "$file" "$cuda/lib64
$cuda/lib
$cuda/targets/$(uname -m)-linux/lib
/usr/local/nvidia/lib64
/usr/lib/wsl/lib")
        [ -n "$folder" ] || {
            from="PyTorch's wheels"
            folder=$(first_with "$file" "$(wheel_folders lib)")
        }
        [ -z "$folder" ] || {
            row libraries "$name" "$from" '' "$folder/$file" ok
            library_path=$library_path:$folder
            return
        }
    done
    row libraries "$name" missing '' "$1 is nowhere: $without" "$verdict"
}

# find_header NAME VERDICT WITHOUT FILE PATTERN: likewise; status 1 where it is
# missing. Headers of a wheel are linked one by one: its folder also holds other
# versions of what nvcc brings.
find_header() {
    folder=$(first_with "$4" "$cuda/include
$cuda/targets/$(uname -m)-linux/include
/usr/include
/usr/include/$(uname -m)-linux-gnu")
    [ -z "$folder" ] || {
        row libraries "$1" 'include path' '' "$folder/$4" ok
        return 0
    }
    folder=$(first_with "$4" "$(wheel_folders include)")
    [ -n "$folder" ] || {
        row libraries "$1" missing '' "$4 is nowhere: $3" "$2"
        return 1
    }
    for header in "$folder"/$5; do
        ln -sf "$header" "$include/"
    done
    row libraries "$1" "PyTorch's wheels" '' "$folder/$4" ok
}

# The verdict where what cannot be done without is missing: the emulation uses
# none of it.
needed() {
    [ "$emulate" = 1 ] && echo info || echo FAILED
}

find_libraries() {
    library_path=''
    needed=$(needed)
    find_library 'the driver' "$needed" 'no device can be used' libcuda.so.1
    find_library 'cuBLASLt' "$needed" 'no products, so no backend' \
        libcublasLt.so.13 libcublasLt.so.12 libcublasLt.so
    find_library 'cuBLAS' info 'only PyTorch would use it' \
        libcublas.so.13 libcublas.so.12 libcublas.so
    find_library 'cuDNN' info 'convolutions by our own kernel' \
        libcudnn.so.9 libcudnn.so
    library_path=${library_path#:}
}

find_headers() {
    needed=$(needed) include=$work/include without_cudnn=''
    mkdir -p "$include"
    find_header 'cuBLASLt headers' "$needed" 'src/training/cuda/products.cu fails' \
        cublasLt.h 'cublasLt*.h' || :
    find_header 'cuBLAS headers' "$needed" 'src/training/cuda/products.cu fails' \
        cublas_api.h 'cublas*.h' || :
    find_header 'cuDNN headers' info 'built without cuDNN' \
        cudnn.h 'cudnn*.h' || without_cudnn=1
}
