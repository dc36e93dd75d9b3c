package importer

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"courier/runner/output"
)

// fieldNames lists the names of the fields in sources; the first is the field itself. Accuracies, errors and
// losses are found by the vocabulary of package output.
var fieldNames = []struct {
	field string
	known string
}{
	{FieldRunID, "run_id run_uuid run id job_id_raw job_id job jobnumber trial_id task_id trial number run_name" +
		" experiment name training_job_name seed fold"},
	{FieldModel, "model model_name model_name_or_path network net architecture arch backbone modell modèle modelo 模型"},
	{FieldDataset, "dataset dataset_name data_set"},
	{FieldBatchSize, "batch_size batchsize batch bs global_batch_size total_batch_size effective_batch_size" +
		" total_train_batch_size train_batch_size per_device_train_batch_size" +
		" minibatch_size mini_batch_size samples_per_gpu batch_size_per_gpu" +
		" batch_size_per_device bsz minibatch batchgröße stapelgröße 批大小"},
	{FieldCPUs, "cpus cpu cores num_cpus ncpus total_cores alloc_cpus cpus_per_trial n_cpus n_cores" +
		" num_cores cpu_num req_cpus required_cpus resource_list_ncpus resources_used_ncpus request_cpus" +
		" nprocs slots"},
	{FieldWorkers, ""}, // workers are mostly those of a data loader, so the field is only used if it is named
	{FieldEpochs, "epochs num_epochs n_epochs nepochs max_epochs max_epoch maxepoch total_epochs" +
		" num_train_epochs epoch_num epochs_total epochen époques épocas"},
	{FieldEpochsDone, "epochs_done epochs_completed completed_epochs epochs_trained epochs_run" +
		" stopped_epoch last_epoch final_epoch"},
	{FieldSeconds, "duration_seconds duration time total_seconds total_time train_time training_time" +
		" elapsed elapsed_seconds elapsed_time seconds runtime run_time train_runtime walltime wall_time" +
		" wall_clock wall_clock_time time_taken" +
		" time_total total_duration training_duration cumulative_time" +
		" sec secs train_seconds train_minutes train_hours total_minutes total_hours" +
		" training_time_in_seconds train_wall elapsed_raw time_elapsed running_time remote_wall_clock_time" +
		" ru_wallclock dauer laufzeit durée duración 耗时 用时"},
	{FieldStartup, "startup_seconds startup"},
	{FieldStartedAt, "started_at start_time start started start_date datetime_start begin begin_time" +
		" start_timestamp training_start_time time_start status_start_time job_start_date" +
		" start_time_utc start_server_timestamp start_ts created created_at creation_time gmt_running_time beginn"},
	{FieldEndedAt, "ended_at end_time end ended finished_at finish_time finished datetime_complete" +
		" completed completed_at completion_time end_date stop_time end_timestamp" +
		" training_end_time end_time_utc time_end status_completion_time completion_date" +
		" end_server_timestamp end_ts finish_date stopped_at gmt_finish_time ende"},
	{FieldAccuracy, ""},
	{FieldError, ""},
	{FieldConcurrentJobs, "concurrent_jobs njobs jobs"},
	{FieldNodes, "nodes node host hostname node_list node_name exec_host spec_node_name"},
	{FieldNodeCores, "node_cores"},
	{FieldCPUModel, "cpu_model cpu_type processor"},
	{FieldGPUModel, "gpu_model gpu_type gpu_name accelerator"},
	{FieldTrainingSamples, "training_samples train_samples samples num_train_samples"},
	{FieldUser, "user user_id username owner"},
	{FieldOutcome, "outcome status state stat job_state state_current training_job_status status_phase success" +
		" exit_code exit_status return_code completions st"},
	{FieldEpoch, "epoch training_iteration epoch_number"},
	{FieldEpochSeconds, "epoch_seconds epoch_time epoch_duration time_per_epoch seconds_per_epoch" +
		" sec_per_epoch duration_per_epoch time_this_iter time_epoch epoch_runtime time_this_epoch dur"},
	{FieldLoss, ""},
	{FieldCommand, "command user_command submit_line submit_cmd command_line cmdline args arguments"},
	{FieldTimeLimit, "time_limit time_limit_raw time_limit_number resource_list_walltime"},
	{FieldDevices, "devices num_devices n_devices gpus num_gpus n_gpus n_gpu gpu_num gpu_count world_size" +
		" nproc_per_node gpus_per_node gres alloc_tres req_tres alloc_gres req_gres tres_per_node num_processes"},
	{FieldAccumulation, "accumulation_steps gradient_accumulation_steps grad_accum_steps accum_iter" +
		" gradient_accumulation grad_accum accumulate_grad_batches"},
	{FieldJobName, "job_name name"},
}

// Fields lists the name of every field.
func Fields() []string {
	all := make([]string, len(fieldNames))
	for i := range fieldNames {
		all[i] = fieldNames[i].field
	}
	return all
}

// durations are the fields whose columns may name their unit.
var durations = []string{FieldSeconds, FieldEpochSeconds, FieldStartup}

// prefixes stand before the names of parameters and results in exports of tracking tools, and before
// counts.
var prefixes = regexp.MustCompile(`^(?i:(?:number|num|no\.?)[_ ]of[_ ]|` +
	`(?:params?|parameters|metrics?|config|cfg|args?|hparams?|hyper_?param(?:eter)?s|summary|inputs?|in|attributes|values?|properties|run|tags\.mlflow|sys)[./ :](?:args[./])?|(?:params|user_attrs|config|hparams)_)_*`)

// otherMeanings are names that equal a known name without its separators, but mean something else.
var otherMeanings = []string{
	"errors", // their number
	"n_jobs", // number of worker processes in scikit-learn, not of concurrent runs
}

// meaningsOf returns the known names that a name may stand for: its own, and those without its prefix, its group
// or its unit.
func meaningsOf(field, name string) []string {
	plain := prefixes.ReplaceAllString(name, "")
	if slices.Contains(otherMeanings, normalize(plain)) {
		return nil
	}
	all := []string{compact(name), compact(plain)}
	group, last := cutLast(plain)
	switch field {
	case FieldBatchSize, FieldEpochs: // data.batch_size, but not eval.batch_size
		if !output.ColumnOf(group).IsHeldOut {
			all = append(all, compact(last))
		}
	case FieldCommand: // jobSpec.container.args
		all = append(all, compact(last))
	case FieldModel, FieldDataset: // train.model, but not teacher.model
		if output.ColumnOf(group).IsTraining {
			all = append(all, compact(last))
		}
	}
	isTime := slices.Contains(durations, field) || field == FieldStartedAt || field == FieldEndedAt
	if base, unit := output.CutUnit(plain); unit > 0 && isTime {
		all = append(all, compact(base))
	}
	return all
}

// cutLast splits a name such as data.batch_size before its last part.
func cutLast(name string) (group, last string) {
	i := strings.LastIndexAny(name, "./")
	if i < 0 {
		return "", name
	}
	return name[:i], name[i+1:]
}

// normalize returns a name in lower case with underscores as separators.
func normalize(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("-./#", r) {
			return '_'
		}
		return r
	}, strings.ToLower(strings.TrimSpace(clockUnit.ReplaceAllString(name, ""))))
}

// clockUnit matches the form of a clock behind a name, such as (hh:mm:ss).
var clockUnit = regexp.MustCompile(`(?i)\s*[(\[](?:h+:)?m+:s+[)\]]$`)

// compact returns a name in lower case without separators, so that "ValAcc" equals "val_acc".
func compact(name string) string { return strings.ReplaceAll(normalize(name), "_", "") }
