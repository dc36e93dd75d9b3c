package main

// Help implements kong.HelpProvider, as the Help methods of the other commands do.
func (*allCommand) Help() string { return example("courier all --data courier-data") }

func (*demoCommand) Help() string {
	return example("courier demo", "courier demo --jobs 20 --stay")
}

func (*runCommand) Help() string {
	return example("courier run --model lenet5 --cpus 1,2,4 --batch-sizes 64,128,256 --epochs 10" +
		" --slo 10m -- python train.py --batch-size {batch} --workers {cpus} --epochs {epochs}")
}

func (*submitCommand) Help() string {
	return example("courier submit --model lenet5 --cpus 2,4 --epochs 10 --slo 10m")
}

func (*predictCommand) Help() string {
	return example("courier predict --model lenet5 --cpus 2,4 --epochs 10 --slo 10m --explain")
}

func (*statusCommand) Help() string { return example("courier status nightly-1") }

func (*jobsCommand) Help() string { return example("courier jobs --state running --limit 50") }

func (*cancelCommand) Help() string {
	return example("courier cancel nightly-1 --reason 'wrong data'")
}

func (*scoreCommand) Help() string { return example("courier score --output json") }

func (*regressorList) Help() string {
	return example("courier regressor list --target epoch_time")
}

func (*regressorShow) Help() string {
	return example("courier regressor show epoch_time", "courier regressor show 3f9a1c")
}

func (*regressorTrain) Help() string {
	return example("courier regressor train --target epoch_time")
}

func (*regressorPromote) Help() string {
	return example("courier regressor promote epoch_time 3f9a1c --reason 'better on new nodes'")
}

func (*regressorRollback) Help() string {
	return example("courier regressor rollback epoch_time --reason 'bounds too low'")
}

func (*regressorExport) Help() string {
	return example("courier regressor export epoch_time --out model.txt",
		"courier regressor export epoch_time --format manifest")
}

func (*collectorCommand) Help() string {
	return example("courier collector --nats-url nats://nats:4222 --node $(hostname)")
}

func (*storeCommand) Help() string {
	return example("courier store --clickhouse-url clickhouse://courier@clickhouse:9000/courier" +
		" --clickhouse-password-file courier.password")
}

func (*trainerCommand) Help() string {
	return example("courier trainer --nats-url nats://nats:4222 --http-address :9100")
}

func (*advisorCommand) Help() string {
	return example("courier advisor --nats-url nats://nats:4222 --http-address :9100")
}

func (*gatewayCommand) Help() string {
	return example("courier gateway --http-address :8080 --tokens tokens" +
		" --tls-cert gateway.crt --tls-key gateway.key")
}

func (*healthCommand) Help() string {
	return example("courier health http://127.0.0.1:9100/readyz")
}
