// The command line of a job request.

// quoted returns a word as a shell reads it.
const quoted = (word) => (/^[\w@%+=:,./{}-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

// flags lists the flags of courier run by the fields of a request.
const flags = {
  id: 'id', model: 'model', dataset: 'dataset', workers: 'workers', cpus: 'cpus', batch_sizes: 'batch-sizes', epochs: 'epochs', max_epochs: 'max-epochs',
  target_accuracy: 'target-accuracy', slo: 'slo', confidence: 'confidence', nodes: 'nodes', loaders: 'loaders',
};
const switches = { elastic: 'elastic', may_stop_early: 'may-stop-early' };

// whatIfPath returns the address of the prediction of a request.
export function whatIfPath(request) {
  const q = new URLSearchParams({ model: request.model, epochs: request.epochs || request.max_epochs || 100 });
  for (const name of ['dataset', 'workers', 'cpus', 'batch_sizes', 'slo']) if (request[name]) q.set(name, request[name]);
  return `/what-if?${q}`;
}

// runCommand returns the command that runs a request, with the training command left to the reader.
export function runCommand(request) {
  const words = ['courier run'];
  for (const [field, flag] of Object.entries(flags)) {
    const value = request[field];
    if (value !== undefined && value !== 0) words.push(`--${flag} ${quoted(String(value))}`); // a list is joined by commas
  }
  for (const [field, flag] of Object.entries(switches)) if (request[field]) words.push(`--${flag}`);
  for (const [name, value] of Object.entries(request.labels ?? {})) words.push(`--labels ${quoted(`${name}=${value}`)}`);
  return `${words.join(' ')} -- python train.py --batch-size {batch} --epochs {epochs}`;
}
