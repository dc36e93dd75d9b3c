#!/bin/sh
# Train BigDL's LeNet under an SLO with spark-submit on this node:
#
#   BIGDL_JAR=bigdl-0.11.0-jar-with-dependencies.jar MNIST=/data/mnist spark/lenet.sh --slo 10m
#
# The options are those of courier run; the command after -- is any spark-submit.
#
# courier run reads the log of the driver, so the driver must run on this node (deploy mode
# "client"). BigDL's logger writes to standard output, Spark's to standard error; both
# formats are read on both. If LoggerFilter redirects the log to bigdl.log, make Spark's
# console show com.intel.analytics.bigdl.optim at INFO (conf/log4j.properties).
#
# BigDL requires batch sizes that are multiples of the number of processes. On YARN use --workers with
# --master yarn --num-executors {workers} --executor-cores {cpus}, and name the nodes of the
# executors with --nodes; the measured CPU time and memory are then those of the driver.
set -eu
: "${BIGDL_JAR:?names the jar of BigDL}" "${MNIST:?names the folder of the MNIST data}"
export COURIER_MODEL="${COURIER_MODEL:-lenet5}"
export COURIER_CPUS="${COURIER_CPUS:-1,2,4}"
export COURIER_BATCH_SIZES="${COURIER_BATCH_SIZES:-64,128,256,512}"
export COURIER_EPOCHS="${COURIER_EPOCHS:-10}"

exec courier run --no-pty "$@" -- \
  spark-submit --master 'local[{cpus}]' --deploy-mode client --driver-memory 4g \
  --class com.intel.analytics.bigdl.models.lenet.Train "$BIGDL_JAR" \
  --folder "$MNIST" --batchSize '{batch}' --maxEpoch '{epochs}'
