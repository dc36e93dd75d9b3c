package digits

// The three matrix products of a fully connected layer. Matrices are slices in row-major order.
// Four images are processed at a time, so that a weight is read once for four of them. This makes a
// large batch cheaper per image than a small one.

// affine sets out (images × outputs) to in (images × inputs) times the
// transpose of weights (outputs × inputs), plus bias in each row.
func affine(out, in, weights, bias []float32, images, inputs, outputs int) {
	i := 0
	for ; i+4 <= images; i += 4 {
		j := 0
		for ; j+2 <= outputs; j += 2 {
			affineBlock(out[i*outputs+j:], in[i*inputs:(i+4)*inputs],
				weights[j*inputs:(j+2)*inputs],
				bias[j:j+2], inputs, outputs)
		}
		for ; j < outputs; j++ {
			for r := i; r < i+4; r++ {
				out[r*outputs+j] = bias[j] + dot(in[r*inputs:(r+1)*inputs],
					weights[j*inputs:(j+1)*inputs])
			}
		}
	}
	for ; i < images; i++ {
		for j := range outputs {
			out[i*outputs+j] = bias[j] + dot(in[i*inputs:(i+1)*inputs],
				weights[j*inputs:(j+1)*inputs])
		}
	}
}

// affineBlock is affine for four images and two outputs, whose eight sums fit in registers. Rows of
// out are stride apart.
func affineBlock(out, in, weights, bias []float32, inputs, stride int) {
	w0, w1 := weights[:inputs], weights[inputs:]
	x0, x1, x2, x3 := in[:inputs], in[inputs:2*inputs], in[2*inputs:3*inputs], in[3*inputs:]
	w1, x0, x1, x2, x3 = w1[:len(w0)], x0[:len(w0)], x1[:len(w0)], x2[:len(w0)], x3[:len(w0)]
	s00, s10, s20, s30 := bias[0], bias[0], bias[0], bias[0]
	s01, s11, s21, s31 := bias[1], bias[1], bias[1], bias[1]
	for k, a := range w0 {
		b := w1[k]
		s00 += a * x0[k]
		s01 += b * x0[k]
		s10 += a * x1[k]
		s11 += b * x1[k]
		s20 += a * x2[k]
		s21 += b * x2[k]
		s30 += a * x3[k]
		s31 += b * x3[k]
	}
	out[0], out[1] = s00, s01
	out[stride], out[stride+1] = s10, s11
	out[2*stride], out[2*stride+1] = s20, s21
	out[3*stride], out[3*stride+1] = s30, s31
}

// dot returns the inner product of two slices of the same length.
func dot(a, b []float32) float32 {
	b = b[:len(a)]
	sum := float32(0)
	for k, v := range a {
		sum += v * b[k]
	}
	return sum
}

// addOuter adds to gradient (outputs × inputs) the transpose of delta
// (images × outputs) times in (images × inputs).
func addOuter(gradient, delta, in []float32, images, inputs, outputs int) {
	for j := range outputs {
		addRows(gradient[j*inputs:(j+1)*inputs], in, delta[j:], images, outputs)
	}
}

// multiply sets out (images × inputs) to delta (images × outputs) times weights (outputs × inputs).
// It computes the derivatives for the previous layer.
func multiply(out, delta, weights []float32, images, inputs, outputs int) {
	clear(out[:images*inputs])
	for i := range images {
		addRows(out[i*inputs:(i+1)*inputs], weights, delta[i*outputs:], outputs, 1)
	}
}

// addRows adds the first count rows to sum, each times its factor; factors are stride apart. It
// skips zero factors, which are half of all after a rectifier, and adds four other rows at a time.
func addRows(sum, rows, factors []float32, count, stride int) {
	n := len(sum)
	var at [4]int // rows with a factor other than 0, up to four
	var by [4]float32
	found := 0
	for i := range count {
		factor := factors[i*stride]
		if factor == 0 {
			continue
		}
		at[found], by[found] = i*n, factor
		found++
		if found == len(at) {
			addFour(sum, rows[at[0]:], rows[at[1]:], rows[at[2]:], rows[at[3]:], by[0], by[1],
				by[2], by[3])
			found = 0
		}
	}
	for k, start := range at[:found] {
		addOne(sum, rows[start:], by[k])
	}
}

// addFour adds the first values of four rows to sum, each row times its factor.
func addFour(sum, x0, x1, x2, x3 []float32, a, b, c, d float32) {
	x0, x1, x2, x3 = x0[:len(sum)], x1[:len(sum)], x2[:len(sum)], x3[:len(sum)]
	for k := range sum {
		sum[k] += a*x0[k] + b*x1[k] + c*x2[k] + d*x3[k]
	}
}

// addOne adds the first values of a row times a factor to sum.
func addOne(sum, row []float32, a float32) {
	row = row[:len(sum)]
	for k := range sum {
		sum[k] += a * row[k]
	}
}
