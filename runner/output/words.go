package output

import (
	"bytes"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// This file is the whole vocabulary. A word that is missing here makes a value absent, never false:
// numbers with unknown names are not recorded.

// kind is what a number measures.
type kind uint8

const (
	kindNone     kind = iota
	kindAccuracy      // a share or a percentage, higher is better; the order is that of preference
	kindF1
	kindAUC
	kindPrecision // mean average precision
	kindOverlap   // intersection over union, Dice coefficient
	kindRate      // an error rate: 1 - accuracy
	kindOther     // better when higher, without a fixed range: BLEU, PSNR, R2
	kindLoss
	kindDistance   // a loss in the units of the target
	kindPerplexity // better when lower
	kindUnnamed    // a score whose name is only that of a data set
	kindTime
)

// isShare reports whether the kind can be given as an accuracy between 0 and 1.
func (k kind) isShare() bool { return k >= kindAccuracy && k <= kindRate }

// scope is the data on which a number was measured.
type scope uint8

const (
	scopeNone scope = iota
	scopeTrain
	scopeTest
	scopeValidation
)

// counter is what a number counts.
type counter uint8

const (
	countsNothing counter = iota
	countsSource          // a rank or a process, which printed the line
	countsInner           // batches, steps, samples
	countsPart            // epochs of a part of the training, such as a warm-up, which the next part may continue
	countsSteps           // i/N of steps, in an output without epochs that is evaluated every N/requested
	countsLead            // an unnamed number at the start of a line
	countsRounds          // iterations, rounds, trees
	countsShare           // i/N with N as requested
	countsEpochs
)

// flag is a remark about a name or a line.
type flag uint32

const (
	flagExcluded  flag = 1 << iota // the number is about something else: best, target, top-5
	flagConfig                     // a setting: total, maximum, every
	flagPart                       // the time of a part of an epoch, or until the end
	flagTotal                      // the time since the start, or of the whole epoch
	flagForeign                    // the line is no training: downloads, plans, restored files
	flagFile                       // the line is about a file: a checkpoint is saved
	flagMean                       // the value is already a mean
	flagNeutral                    // the word adds nothing to the name
	flagLevel                      // the level of a logger, or another word that is no part of a name
	flagSummary                    // the line is about the whole run
	flagSetting                    // a number that is no result, such as the learning rate
	flagWeak                       // a weak name: a score or an error of unknown data, or one of several losses
	flagBytes                      // a unit of size
	flagLocation                   // the ending of a source file
	flagIndirect                   // "key" or "value" of a pair in JSON
	flagEnd                        // something ended, and with it the scope of its heading
	flagExtension                  // the extension of a file name
	flagStart                      // something starts
	flagClass                      // the line may be about one class
	flagEdits                      // a share of wrong words, which may be above 1; 0 is not measured
	flagCost                       // a loss, a time or a price: a loss in epochs that other signs confirm
	flagTests                      // tests of software
	flagTop                        // the accuracy of several guesses
	flagSave                       // a file is written, or its model has become better
)

// word is the entry of a word.
type word struct {
	seconds float64 // as a unit of time
	kind    kind
	scope   scope
	counter counter
	flags   flag
}

// vocabulary maps the hashes of words to their meaning.
var vocabulary = map[uint64]*word{}

// define adds words, separated by blanks.
func define(w word, words string) {
	for s := range strings.FieldsSeq(words) {
		vocabulary[hashOf([]byte(s))] = new(w)
	}
}

// definitions are the words of each meaning. A later one replaces an earlier one of the same word.
var definitions = []struct {
	meaning word
	words   string
}{
	{word{kind: kindAccuracy}, `
		acc accu accuracy accuracies acc1 acc@1 prec@1 top1 top@1 top-1 accuracy@1 aacc macc top1accuracy
		acc@top1 top1acc hit@1 exact_match 准确率 精度 正确率 準確率 正解率 정확도 точность précision genauigkeit exactitude
		exactitud accuratezza precisión acurácia precisão dokładność doğruluk doğruluğu nauwkeurigheid точність
		přesnost noggrannhet akurasi`},
	{word{kind: kindF1}, "f1 fscore f-score f1-score f1score f1@m"},
	{word{kind: kindAUC}, "auc auroc rocauc roc_auc auprc roc-auc"},
	{word{kind: kindPrecision}, `
		map map50 map@0.5 map@.5 map@50 map50-95 map@.5:.95 map@0.5:0.95 map@50-95 map@[.5:.95] ap bbox_map`},
	{word{kind: kindOverlap}, "iou miou dice jaccard mdice"},
	{word{kind: kindRate}, "merror eer error_rate"},
	{word{kind: kindRate, flags: flagEdits}, "wer cer per"},
	{word{kind: kindRate, flags: flagWeak}, "error err errors"},
	{word{kind: kindOther}, `
		r2 bleu rouge rougel reward spearman pearson kappa mcc ndcg meteor cider recall precision`},
	{word{kind: kindOther, flags: flagWeak}, "psnr ssim"}, // encoders print them, too
	{word{kind: kindLoss}, `
		loss losses logloss mlogloss multi_logloss binary_logloss deviance 损失 損失 손실 потери потеря perte verlust
		pérdida perda perdita strata kayıp kaybı verlies втрати втрата ztráta förlust`},
	{word{kind: kindLoss, flags: flagWeak}, `
		nll crossentropy xent elbo ce bce cross_entropy cross-entropy`},
	{word{kind: kindLoss, flags: flagWeak | flagCost}, "cost objective"}, // of a solver, too,
	{word{kind: kindDistance}, "rmse mse mae l1 l2 mape rmsle squared absolute square reconstruction"},
	{word{kind: kindPerplexity}, "ppl perplexity"},
	{word{scope: scopeTrain}, `
		train training learn trn tr finetune finetuning fine-tuning 训练 訓練 学習 훈련 학습 обучение entraînement entrenamiento treino`},
	{word{scope: scopeValidation}, `
		val valid validation dev eval evaluation evaluate holdout heldout held-out vld vali cv 验证
		驗證 検証 검증 валидация валидации вал валид validierung validación validação validate doğrulama`},
	{word{scope: scopeValidation, flags: flagStart}, "validating evaluating"},
	{word{scope: scopeTest, flags: flagStart}, "testing"},
	{word{flags: flagTests}, "session"},
	{word{scope: scopeTest, flags: flagTests}, "tests"},
	{word{scope: scopeTest}, "test tst 测试 測試 テスト 테스트 тест"},
	{word{counter: countsEpochs}, `
		epoch ep epoche époque epoca época epoka эпоха епоха epocha epok dönem 轮 輪 轮次 轮数 エポック 에폭 에포크 epoch_num
		ep.`},
	{word{counter: countsEpochs, flags: flagConfig}, "epochs"},
	{word{counter: countsRounds}, "iteration iter round tree generation cycle it pass 迭代 次迭代"},
	{word{counter: countsInner}, `
		step steps batch batches minibatch sample samples image images updates update iters iterations
		global_step global_steps records episode timestep timesteps 步 批 批次`},
	{word{counter: countsInner, flags: flagPart}, `
		file files fold shard chunk part trial layer block game fetching attempt retry stage task job page node
		gpu_mem candidate`},
	{word{counter: countsSource}, `
		rank pid default local_rank worker proc process gpu replica trainer_id rank:`},
	{word{kind: kindTime}, `
		time took elapsed duration seconds secs dur taken runtime clock wallclock train_wall 用时 耗时 zeit durée`},
	{word{kind: kindTime, flags: flagPart}, "eta remaining left latency lasts"},
	{word{flags: flagPart}, `
		data iter_time load loading loader forward backward step_time startup expected exp estimated reader
		saving optim collection computation inference preprocess until io per wait fwd bwd sync
		evaluated compile`},
	{word{flags: flagPart | flagEnd}, "finish"},
	{word{flags: flagStart}, "start starting starts begin beginne begins début inicio начало 开始 開始"},
	{word{flags: flagStart | flagPart}, "started"},
	{word{flags: flagStart | flagMean | flagNeutral}, "running"},
	{word{flags: flagTotal}, "total wall overall whole"},
	{word{flags: flagTotal | flagWeak}, "cumulative"},
	{word{flags: flagExcluded}, `
		best target patience previous prev baseline min max std count threshold delta improvement bestaccuracy
		besttest expected_acc correct initial smoothing weight scale scaling norm margin last_best early change
		decreased diff gap stdev highest lowest bestiteration budget`},
	{word{kind: kindAccuracy, flags: flagExcluded | flagTop}, "top5 acc@5 acc5 prec@5 top@5 top-5 top5accuracy hit@5"},
	{word{flags: flagConfig}, `
		num number every warmup n interval freq frequency from until maximum after_n for max_epochs num_epochs
		since save_every decay milestone start_epoch last_epoch begin_epoch init_epoch initial_epoch resume_epoch`},
	{word{flags: flagSetting}, `
		lr lrate learning_rate learning momentum dropout seed gamma beta alpha epsilon wd grad_norm gnorm mem
		memory size speed throughput ips fps tokens words samples_per_second param params v_num label labels
		gpu_mem second sec/step`},
	{word{flags: flagNeutral | flagEnd}, "done finished complete completed end ended ends"},
	{word{flags: flagForeign}, `
		downloading download downloaded would dry plan planned resuming resume resumed restored restoring loaded
		found loading_from extracting fetched unpacking installing scheduled skipping skip skipped collecting
		passed failed pytest retrying waiting verifying uploading copying will attestation validators finalized
		peers leader quorum`},
	{word{flags: flagFile}, "checkpoint checkpoints snapshot"},
	{word{flags: flagFile | flagSave}, `
		saved saving save wrote writing written stored storing improved improve early-stopping stopped reverting`},
	{word{flags: flagMean | flagNeutral}, "avg mean average averaged"},
	{word{flags: flagPart | flagNeutral}, "value"}, // the loss of a value is a part, and the value of a loss is not
	{word{flags: flagPart}, "critic actor policy surrogate vf"},
	{word{flags: flagNeutral}, `
		summary results result stats stop set rate of is was micro macro weighted multiclass binary categorical sparse
		final metric metrics epoch_loss s lm model overall_acc the on cls_acc global dataset current softmax
		multi evaluator m mini in and with per-token finished_in`},
	{word{flags: flagNeutral | flagWeak}, "score"},
	{word{flags: flagLevel}, "info debug warn warning error: notice trace fatal critical root main"},
	{word{flags: flagLevel | flagNeutral}, "nan inf infinity none null"}, // which end a name, as numbers do
	{word{flags: flagSummary}, "train_runtime"},
	{word{flags: flagIndirect}, "key tag metric_name"},
	{word{flags: flagLocation}, "py cpp cc scala java"},
	{word{flags: flagExtension}, "h5 pkl npz tar"},
	{word{flags: flagFile | flagExtension}, "pth pt keras safetensors onnx"},
	{word{flags: flagFile | flagExtension | flagNeutral}, "ckpt"}, // also as a word
	{word{counter: countsInner, flags: flagExcluded | flagClass}, "class"},
	{word{flags: flagBytes}, "b kb mb gb kib mib gib tb bytes"},
}

func init() {
	for _, d := range definitions {
		define(d.meaning, d.words)
	}
	for head := range strings.FieldsSeq("train training trainings val valid validation validierungs test dev eval") {
		for tail := range strings.FieldsSeq("loss acc accuracy error verlust genauigkeit") { // in one word
			compound := *vocabulary[hashOf([]byte(tail))]
			compound.scope = vocabulary[hashOf([]byte(strings.TrimSuffix(head, "s")))].scope
			define(compound, head+tail)
		}
	}
	for _, unit := range []struct { // which may have another meaning as words
		seconds float64
		words   string
	}{
		{1e-6, "us µs"}, {1e-3, "ms msec millis milliseconds"}, {1, "s sec secs second seconds 秒 с сек"},
		{60, "m min mins minute minutes"}, {3600, "h hr hrs hour hours"}, {86400, "d day days"},
	} {
		for s := range strings.FieldsSeq(unit.words) {
			hash := hashOf([]byte(s))
			if vocabulary[hash] == nil {
				vocabulary[hash] = &word{}
			}
			vocabulary[hash].seconds = unit.seconds
		}
	}
}

// unit is what follows a number.
type unit uint8

const (
	unitNone unit = iota
	unitPercent
	unitTime
	unitPer   // a time per step, or steps per time
	unitOther // bytes, counts with a letter
)

var hashSeed = maphash.MakeSeed()

// hashOf returns the hash of a word, whatever its case.
func hashOf(t []byte) uint64 {
	mayBeUpper := func(c byte) bool { return c >= utf8.RuneSelf || c >= 'A' && c <= 'Z' }
	if slices.ContainsFunc(t, mayBeUpper) { // ToLower allocates
		t = bytes.ToLower(t)
	}
	return maphash.Bytes(hashSeed, t)
}

const hashFactor = 0x9e3779b97f4a7c15

// combine adds the hash of a word to that of the words before it.
func combine(h, word uint64) uint64 { return (h<<7|h>>57)*hashFactor ^ word }

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// decodeLetter returns the size of the first rune, and whether it belongs to a word. Bars, boxes and
// bullets do not.
func decodeLetter(t []byte) (int, bool) {
	r, size := utf8.DecodeRune(t)
	return size, r != utf8.RuneError && !(r >= 0x2000 && r < 0x2c00) && !(r >= 0x3000 && r < 0x3040) &&
		!(r >= 0xff00 && r < 0xff21) && r > 0xbf || r == 'µ'
}

// parseNumber returns the value of a decimal number, also of 0.5f0 as Julia prints it.
func parseNumber(t []byte) float64 {
	if bytes.IndexByte(t, 'f') >= 0 {
		t = bytes.ReplaceAll(t, []byte("f"), []byte("e"))
	}
	v, _ := strconv.ParseFloat(string(t), 64) // infinite if it is too large
	return v
}

func skipDigits(t []byte, i int) int {
	for i < len(t) && isDigit(t[i]) {
		i++
	}
	return i
}

func skipBlanks(t []byte, i int) int {
	for i < len(t) && t[i] == ' ' {
		i++
	}
	return i
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
