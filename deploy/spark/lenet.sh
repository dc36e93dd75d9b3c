#!/bin/sh
# BigDL's LeNet under a deadline, by spark-submit on this node:
#
#   BIGDL_JAR=bigdl-0.11.0-jar-with-dependencies.jar MNIST=/data/mnist spark/lenet.sh --slo 10m
#
# The options are those of courier run; what stands behind -- is any spark-submit.
#
# courier run reads the driver's log, so the driver must run here: deploy mode
# "client". Its lines come by BigDL's logger from the standard output or, by Spark's
# own, from the standard error, in the form of either; both are read. Where
# LoggerFilter sends them to bigdl.log only, see that Spark's console shows
# com.intel.analytics.bigdl.optim at INFO (conf/log4j.properties).
#
# Batch sizes must be multiples of the processes: BigDL refuses others. On YARN it is
# --master yarn --num-executors {cpus} --executor-cores 1, with --nodes for where
# executors run; what an epoch took of CPU and memory is then that of the driver.
set -eu
: "${BIGDL_JAR:?names the jar of BigDL}" "${MNIST:?names the folder of the MNIST data}"
export COURIER_MODEL="${COURIER_MODEL:-lenet5}"
export COURIER_CPUS="${COURIER_CPUS:-1,2,4}"
export COURIER_BATCH_SIZES="${COURIER_BATCH_SIZES:-64,128,256,512}"
export COURIER_EPOCHS="${COURIER_EPOCHS:-10}"
export COURIER_TRAINING_SAMPLES="${COURIER_TRAINING_SAMPLES:-60000}"

exec courier run --format=bigdl --no-pty "$@" -- \
  spark-submit --master 'local[{cpus}]' --deploy-mode client --driver-memory 4g \
  --class com.intel.analytics.bigdl.models.lenet.Train "$BIGDL_JAR" \
  --folder "$MNIST" --batchSize '{batch}' --maxEpoch '{epochs}'
