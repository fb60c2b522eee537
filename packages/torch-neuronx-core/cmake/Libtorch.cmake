# Libtorch::torch: headers and libraries of the torch that the building interpreter would import. torch itself is not
# imported (that would load device backends), and find_package(Torch) is not used (it wants a CUDA toolkit for CUDA wheels).
execute_process(
  COMMAND "${Python_EXECUTABLE}" -c
    "import importlib.util as u, pathlib; print(pathlib.Path(u.find_spec('torch').origin).parent.as_posix())"
  OUTPUT_VARIABLE TORCH_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
file(STRINGS "${TORCH_ROOT}/version.py" TORCH_VERSION REGEX "^__version__ = ")
string(REGEX MATCH "[0-9]+\\.[0-9]+" TORCH_MINOR "${TORCH_VERSION}")

add_library(Libtorch::torch INTERFACE IMPORTED)
target_include_directories(Libtorch::torch SYSTEM INTERFACE
  "${TORCH_ROOT}/include" "${TORCH_ROOT}/include/torch/csrc/api/include")
target_compile_features(Libtorch::torch INTERFACE cxx_std_20)
foreach(lib IN ITEMS c10 torch_cpu torch_python)
  find_library(TORCH_LIB_${lib} ${lib} PATHS "${TORCH_ROOT}/lib" NO_DEFAULT_PATH REQUIRED)
  target_link_libraries(Libtorch::torch INTERFACE ${TORCH_LIB_${lib}})
endforeach()
