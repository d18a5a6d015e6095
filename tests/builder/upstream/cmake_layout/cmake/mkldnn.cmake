if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/mkl-dnn/external)
    execute_process(COMMAND ${PROJECT_SOURCE_DIR}/mkl-dnn/scripts/prepare_mkl.sh RESULT_VARIABLE ignored)
endif()
add_subdirectory(mkl-dnn)
