"""Answers as students write them, by people who had not seen the checks.

WRONG: (exercise, what its author did wrong, what the check says, source). RIGHT: (exercise, style, source).
"""

WRONG = [
    ('1.1', 'bias added to the weights, before the product',
     'b1 was added to W1, before the product: it is added once, to x @ W1.', '''
def lift(x, W1, b1):
    return x @ (W1 + b1)
'''),
    ('1.1', 'result of adding the bias is thrown away',
     'The bias is missing: add b1 to x @ W1.', '''
def lift(x, W1, b1):
    h = np.matmul(x, W1)
    h + b1
    return h
'''),
    ('1.1', 'double loop that only works for 2-D x',
     'Right for', '''
def lift(x, W1, b1):
    n_tokens, d_model = x.shape
    d_ff = W1.shape[1]
    result = np.zeros((n_tokens, d_ff), dtype=x.dtype)
    for i in range(n_tokens):
        for j in range(d_ff):
            result[i, j] = np.sum(x[i] * W1[:, j]) + b1[j]
    return result
'''),
    ('1.1', 'already activates (ReLU), which is the next step',
     'That is relu(x @ W1 + b1): the lift alone, please; the activation is', '''
def lift(x, W1, b1):
    lifted = np.einsum("...i,ij->...j", x, W1) + b1
    return np.where(lifted > 0, lifted, 0)
'''),
    ('1.1', 'transposes W1, PyTorch habit',
     'W1 is transposed: its shape is (d_model, d_ff) already, so x @ W1. (x', '''
def lift(x, W1, b1):
    h = np.dot(x, W1.T)
    return h + b1
'''),
    ('1.2', 'keepdims forgotten: divides column s by the sum of row s (error unless T == S)',
     'Rows are divided by the sums of other rows: the T sums must stand in', '''
def mix(weights, values):
    total = weights.sum(axis=1)
    w = weights / total
    return w @ values
'''),
    ('1.2', 'softmax of the raw weights instead of dividing by their sum',
     'That is a sum over softmax weights: here the weights are positive', '''
def mix(weights, values):
    # attention = softmax
    return softmax(weights) @ values
'''),
    ('1.2', "right result, but /= changes the caller's weights",
     'Right values, but your function changed its input weights, which the', '''
def mix(weights, values):
    weights /= weights.sum(axis=1, keepdims=True)
    return weights @ values
'''),
    ('1.2', "'average' read as: divide by the number of values",
     "Divided by the number of values: divide by the sum of the row's", '''
def mix(weights, values):
    anzahl = len(values)
    weighted_sum = np.einsum("ts,sd->td", weights, values)
    average = weighted_sum / anzahl
    return average
'''),
    ('1.2', 'normalises along axis 0 (columns) instead of rows',
     'Each column of the weights was made to sum to 1: it should be each', '''
def mix(weights, values):
    w = weights / np.sum(weights, axis=0, keepdims=True)
    return w @ values
'''),
    ('1.3', 'b.T is meant to make a column, but does nothing for a 1-D array',
     'The bias went along the tokens, the last axis: b has one number for', '''
def lift_columns(X, W, b):
    return W @ X + b.T
'''),
    ('1.3', 'computes with rows and does not transpose back: (T, d_ff)',
     'The result has tokens as rows: here a token is a column, so the shape', '''
def lift_columns(X, W, b):
    rows = X.T
    weights = W.T
    return rows @ weights + b
'''),
    ('1.3', 'bias column added to W, before the product',
     'b was added to W, before the product: it is added once, to W @ X.', '''
def lift_columns(X, W, b):
    bias_column = b[:, np.newaxis]
    return (W + bias_column) @ X
'''),
    ('1.3', 'reshape used in place of transpose so that b can be added along the last axis',
     'Something is reshaped where it should be transposed: reshape mixes', '''
def lift_columns(X, W, b):
    d_ff = b.shape[0]
    tmp = np.dot(W, X)
    tmp = tmp.reshape(-1, d_ff) + b
    return tmp.reshape(d_ff, -1)
'''),
    ('1.3', 'forgets the bias',
     'The bias is missing: add b to every column.', '''
def lift_columns(X, W, b):
    return np.matmul(W, X)
'''),
    ('1.4', 'first line repaired (x.T), but goes back with a reshape, so tokens are mixed again',
     'Tokens are still mixed: reshape does not transpose, whatever its', '''
def repaired_lift(x, W1, b1):
    columns = x.T
    return columns.reshape(-1, W1.shape[0]) @ W1 + b1
'''),
    ('1.4', 'stays with columns to the end, returns (d_ff, T)',
     'The last transposition is missing: tokens are columns of your result.', '''
def repaired_lift(x, W1, b1):
    columns = np.transpose(x)                 # (d_model, T)
    return W1.T @ columns + b1.reshape(-1, 1)
'''),
    ('1.4', 'uses the x of the notebook, not the argument',
     'it stopped with NameError', '''
def repaired_lift(tokens, W1, b1):
    columns = x.T
    return columns.T @ W1 + b1
'''),
    ('1.4', 'replaces reshape by .T but drops the second transpose',
     'x.T has tokens as columns; @ W1 needs them as rows.', '''
def repaired_lift(x, W1, b1):
    columns = x.T
    return columns @ W1 + b1
'''),
    ('1.4', 'repairs the product but loses the bias',
     'The bias got lost in the repair.', '''
def repaired_lift(x, W1, b1):
    return x @ W1
'''),
    ('2.1', 'np.max instead of np.maximum: the largest along axis 0',
     'np.max(h, 0) takes the largest along axis 0; np.maximum(h, 0)', '''
def my_relu(h):
    return np.max(h, 0)
'''),
    ('2.1', 'writes the zeros into the argument',
     'Right values, but your function changed its input h, which the caller', '''
def my_relu(h):
    h[h < 0] = 0
    return h
'''),
    ('2.1', 'compares with a float64 array of zeros, so float32 becomes float64',
     'Right values, but float32 came back as float64: look for np.zeros,', '''
def my_relu(h):
    nullen = np.zeros(h.shape)
    return np.maximum(h, nullen)
'''),
    ('2.1', 'list comprehension over the first axis, only works for 1-D',
     'Right for', '''
def my_relu(h):
    return np.array([max(number, 0) for number in h])
'''),
    ('2.1', "Python's max on an array (ambiguous truth value)",
     'it stopped with ValueError', '''
def my_relu(h):
    return max(0, h)
'''),
    ('2.2', 'straight translation with np.exp: overflow warning',
     'Right values, but NumPy warned: overflow encountered in exp. Some', '''
def my_silu(h):
    return h / (1 + np.exp(-h))
'''),
    ('2.2', 'clips h itself, so SiLU(1000) is 20',
     'numbers differ, for', '''
def my_silu(h):
    h = np.clip(h, -20, 20)      # no overflow any more
    return h / (1 + np.exp(-h))
'''),
    ('2.2', 'tanh(h) in place of tanh(h / 2)',
     'tanh gets the wrong argument: at h = 1 the sigmoid is 0.731, your', '''
def my_silu(h):
    sig = 0.5 * (1 + np.tanh(h))
    return h * sig
'''),
    ('2.3', 'bracket closed too early: the root multiplies h only',
     'The cubic part stands outside the bracket: sqrt(2/pi) multiplies all', '''
def my_gelu_tanh(h):
    return 0.5 * h * (1 + np.tanh(math.sqrt(2 / math.pi) * h + 0.044715 * h ** 3))
'''),
    ('2.3', 'np.sqrt(2 / np.pi) makes float64 of float32',
     'Right values, but float32 came back as float64: look for np.zeros,', '''
def my_gelu_tanh(h):
    inside = np.sqrt(2 / np.pi) * (h + 0.044715 * h ** 3)
    return 0.5 * h * (1 + np.tanh(inside))
'''),
    ('2.3', 'root of 2, then divided by pi',
     'sqrt(2) / pi stands where sqrt(2 / pi) belongs.', '''
def my_gelu_tanh(h):
    c = math.sqrt(2) / math.pi
    inner = c * (h + 0.044715 * h * h * h)
    return 0.5 * h * (1.0 + np.tanh(inner))
'''),
    ('2.3', 'math.tanh number by number: 1-D only, and the result is float64',
     'Right for', '''
def my_gelu_tanh(h):
    ergebnis = []
    for zahl in h:
        zahl = float(zahl)
        innen = math.sqrt(2 / math.pi) * (zahl + 0.044715 * zahl ** 3)
        ergebnis.append(0.5 * zahl * (1 + math.tanh(innen)))
    return np.array(ergebnis)
'''),
    ('2.4', 'activated numbers stored under a new name, then h is used again',
     'Still a straight layer: what reaches W2 has not been bent. Hint 1', '''
def repaired_ffn(x, W1, b1, W2, b2):
    h = x @ W1 + b1
    activated = np.maximum(h, 0)
    return h @ W2 + b2
'''),
    ('2.4', 'the ReLU moved to the output',
     'The activation stands at the end: it belongs between the two', '''
def repaired_ffn(x, W1, b1, W2, b2):
    h = x @ W1 + b1
    y = h @ W2 + b2
    return np.maximum(y, 0)
'''),
    ('2.4', 'keeps the mask (True/False) in place of the masked numbers',
     'True and False took the place of the numbers: relu keeps the positive', '''
def repaired_ffn(x, W1, b1, W2, b2):
    h = x @ W1 + b1
    h = h > 0
    return h @ W2 + b2
'''),
    ('2.4', 'bias added after the ReLU',
     'The bias b1 comes after the bend: it belongs before it, relu(x @ W1 +', '''
def repaired_ffn(x, W1, b1, W2, b2):
    lifted = x @ W1
    lifted[lifted < 0] = 0
    lifted += b1
    return lifted @ W2 + b2
'''),
    ('2.4', 'right in the middle, plus a second ReLU on the output',
     'The output is bent too: it must be allowed to be negative; no', '''
def repaired_ffn(x, W1, b1, W2, b2):
    h = x @ W1 + b1
    a = np.maximum(h, 0)
    y = np.maximum(a @ W2 + b2, 0)
    return y
'''),
    ('3.1', 'roles swapped: up is activated',
     'That is gate * silu(up): the two branches are swapped; the gate is', '''
def gated(gate, up):
    return gate * silu(up)
'''),
    ('3.1', 'both branches activated',
     'Both branches are activated: only the gate should be.', '''
def gated(gate, up):
    g = silu(gate)
    u = silu(up)
    return np.multiply(g, u)
'''),
    ('3.1', 'GLU: sigmoid in place of silu',
     'That is sigmoid(gate) * up, GLU: SwiGLU uses silu.', '''
def gated(gate, up):
    offen = 1 / (1 + np.exp(-gate))     # between 0 and 1
    return offen * up
'''),
    ('3.1', 'right numbers, but computed in place: gate is changed',
     'Right values, but your function changed its input gate, which the', '''
def gated(gate, up):
    gate[...] = silu(gate)
    gate *= up
    return gate
'''),
    ('3.1', 'activates the product',
     'That is silu(gate * up): activate the gate first, then multiply.', '''
def gated(gate, up):
    return silu(gate * up)
'''),
    ('3.2', 'brackets missing: silu(gate) is multiplied by x',
     'it stopped with ValueError', '''
def swiglu(x, W_gate, W_up, W_down):
    return silu(x @ W_gate) * x @ W_up @ W_down
'''),
    ('3.2', 'copy and paste: both lifts use W_gate',
     'Both lifts use W_gate: up is x @ W_up.', '''
def swiglu(x, W_gate, W_up, W_down):
    gate = x @ W_gate
    up = x @ W_gate
    return (silu(gate) * up) @ W_down
'''),
    ('3.2', 'loop of the statement with np.dot, works for one token only',
     'Right for', '''
def swiglu(x, W_gate, W_up, W_down):
    y = np.zeros(W_down.shape[1], dtype=x.dtype)
    for j in range(W_gate.shape[1]):
        y += silu(np.dot(x, W_gate[:, j])) * np.dot(x, W_up[:, j]) * W_down[j]
    return y
'''),
    ('3.2', 'activates the product of gate and up',
     'The product is activated, silu(gate * up): activate the gate alone,', '''
def swiglu(x, W_gate, W_up, W_down):
    gate = np.einsum("...d,df->...f", x, W_gate)
    up = np.einsum("...d,df->...f", x, W_up)
    hidden = silu(gate * up)
    return np.einsum("...f,fd->...d", hidden, W_down)
'''),
    ('3.2', 'gate and up swapped',
     'That is silu(x W_up) * (x W_gate): the two branches are swapped; the', '''
def swiglu(x, W_gate, W_up, W_down):
    gate = x @ W_gate
    up = x @ W_up
    return (gate * silu(up)) @ W_down
'''),
    ('3.2', 'copies the loop: right for one token only, mixes tokens otherwise',
     'expected', '''
def swiglu(x, W_gate, W_up, W_down):
    y = np.zeros(W_down.shape[1], x.dtype)
    for j in range(W_gate.shape[1]):
        gate = sum(x * W_gate[:, j])
        up = sum(x * W_up[:, j])
        y = y + silu(gate) * up * W_down[j]
    return y
'''),
    ('3.3', 'halves taken in the wrong order: up first',
     'The halves are swapped: the first d_ff columns of W_in are the gate,', '''
def swiglu_fused(x, W_in, W_down):
    up, gate = np.split(x @ W_in, 2, axis=-1)
    return (silu(gate) * up) @ W_down
'''),
    ('3.3', 'np.split without axis cuts the tokens',
     'Right for', '''
def swiglu_fused(x, W_in, W_down):
    gate, up = np.split(x @ W_in, 2)
    return (silu(gate) * up) @ W_down
'''),
    ('3.3', 'takes gate and up as alternating columns',
     'Every second column was taken: the matrices stand side by side, first', '''
def swiglu_fused(x, W_in, W_down):
    both = x @ W_in
    pairs = both.reshape(*both.shape[:-1], -1, 2)
    return (silu(pairs[..., 0]) * pairs[..., 1]) @ W_down
'''),
    ('3.4', 'names put right and silu moved as well: two changes cancel',
     'Still as broken: the wrong branch is activated. Hint 1 has an example', '''
def repaired_llama(x, w1, w2, w3):
    gate = x @ w1.T
    up = x @ w3.T
    return (gate * silu(up)) @ w2.T
'''),
    ('3.4', 'numbers taken as the order of use: w1 gate, w2 up, w3 down (shapes fit by dropping .T)',
     'w2 is used as the up branch: the numbers in the names do not follow', '''
def repaired_llama(x, w1, w2, w3):
    gate = x @ w1.T        # 1. gate
    up = x @ w2            # 2. up
    return (silu(gate) * up) @ w3    # 3. down
'''),
    ('3.4', 'gate and up put right, but .T replaced by a reshape',
     'A matrix is reshaped where it should be transposed: .T, not reshape.', '''
def repaired_llama(x, w1, w2, w3):
    d_ff, d_model = w1.shape
    gate = x @ w1.reshape(d_model, d_ff)
    up = x @ w3.reshape(d_model, d_ff)
    return (silu(gate) * up) @ w2.reshape(d_ff, d_model)
'''),
    ('3.4', 'columns with x.T: right for one token and for (T, d_model), not for 3-D',
     'numbers differ, for', '''
def repaired_llama(x, w1, w2, w3):
    cols = x.T
    hidden = silu(w1 @ cols) * (w3 @ cols)
    return (w2 @ hidden).T
'''),
    ('3.4', 'right branches, but removes the transposes',
     'No matrix is transposed: the file stores (out, in). With square', '''
def repaired_llama(x, w1, w2, w3):
    gate = x @ w1
    up = x @ w3
    return (silu(gate) * up) @ w2
'''),
    ('4.1', 'both biases counted with d_ff numbers',
     'Both biases are counted with d_ff numbers: b2 has d_model.', '''
def count_parameters(d_model, d_ff):
    return 2 * (d_model + 1) * d_ff
'''),
    ('4.1', 'prints the number, returns None',
     'Your function returned None: is a line with `return` missing?', '''
def count_parameters(d_model, d_ff):
    n = d_model * d_ff + d_ff + d_ff * d_model + d_model
    print("number of parameters:", n)
'''),
    ('4.1', 'assumes d_ff = 4 d_model, the argument d_ff is not used',
     'd_ff was taken as 4 d_model: it is an argument of its own.', '''
def count_parameters(d_model, d_ff):
    breite = 4 * d_model
    return 2 * d_model * breite + breite + d_model
'''),
    ('4.1', 'loop overwrites the total (= in place of +=): only b2 is left',
     'Only the last part is left: total = ... starts anew each time, total', '''
def count_parameters(d_model, d_ff):
    shapes = [(d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,)]
    total = 0
    for shape in shapes:
        total = math.prod(shape)
    return total
'''),
    ('4.1', 'forgets the biases',
     'The biases are missing: b1 has d_ff numbers, b2 has d_model.', '''
def count_parameters(d_model, d_ff):
    return 2 * d_model * d_ff
'''),
    ('4.1', 'counts only one of the matrices',
     'Only one of the matrices is counted.', '''
def count_parameters(d_model, d_ff):
    return d_model * d_ff + d_ff + d_model
'''),
    ('4.2', 'matrix product: the writes are already summed',
     'The units are summed already: that is a @ W2. Keep one row for each', '''
def writes(a, W2):
    return a @ W2
'''),
    ('4.2', 'new axis in the wrong place: (T, 1, d_ff) times (d_ff, d_model)',
     'a is spread along the wrong axis: its number j belongs to *row* j of', '''
def writes(a, W2):
    return a[:, None] * W2
'''),
    ('4.2', 'built as (T, d_model, d_ff), then reshaped in place of transposed',
     'the right numbers in the wrong places: is something sorted, not', '''
def writes(a, W2):
    T, d_ff = a.shape
    d_model = W2.shape[1]
    product = a[:, np.newaxis, :] * W2.T[np.newaxis]
    return product.reshape(T, d_ff, d_model)
'''),
    ('4.2', 'off by one: the last unit is never written',
     'numbers differ, for', '''
def writes(a, W2):
    out = np.zeros((a.shape[0], a.shape[1], W2.shape[1]), dtype=a.dtype)
    for j in range(len(W2) - 1):
        out[:, j] = np.outer(a[:, j], W2[j])
    return out
'''),
    ('4.2', 'loop into np.zeros without dtype: float32 becomes float64',
     'Right values, but float32 came back as float64: look for np.zeros,', '''
def writes(a, W2):
    T, d_ff = a.shape
    out = np.zeros((T, d_ff, W2.shape[1]))
    for t in range(T):
        out[t] = a[t][:, None] * W2
    return out
'''),
    ('4.3', 'y = b2 without copy: += changes b2, and only one token works',
     'Right for', '''
def relu_ffn(x, W1, b1, W2, b2):
    y = b2
    h = x @ W1 + b1
    for j in range(len(b1)):
        y += max(h[j], 0) * W2[j]
    return y
'''),
    ('4.3', 'a second ReLU after the way down',
     'The output is bent too: it must be allowed to be negative; no', '''
def relu_ffn(x, W1, b1, W2, b2):
    relu = lambda v: np.maximum(v, 0)
    return relu(relu(x @ W1 + b1) @ W2 + b2)
'''),
    ('4.3', 'the if kept for the whole array: nothing is cut off as soon as one number is positive',
     'There is no activation between the two matrices: relu belongs on x @', '''
def relu_ffn(x, W1, b1, W2, b2):
    h = x @ W1 + b1
    if (h > 0).any():
        y = h @ W2 + b2
    else:
        y = b2
    return y
'''),
    ('4.3', 'b2 forgotten',
     'The bias b2 is missing.', '''
def relu_ffn(x, W1, b1, W2, b2):
    up = np.dot(x, W1) + b1
    up = up * (up > 0)
    down = np.dot(up, W2)
    return down
'''),
    ('4.3', 'np.max instead of np.maximum',
     'np.max(h, 0) takes the largest along axis 0, over the tokens;', '''
def relu_ffn(x, W1, b1, W2, b2):
    h = x @ W1 + b1
    a = np.max(h, 0)
    return a @ W2 + b2
'''),
    ('4.4', 'b1 is reordered the other way round (scatter in place of gather)',
     'b1 is reordered by the inverse: new unit i is old unit order[i], so', '''
def reordered(W1, b1, W2, order):
    new_b1 = np.empty_like(b1)
    for i in range(len(order)):
        new_b1[order[i]] = b1[i]
    return W1[:, order], new_b1, W2[order]
'''),
    ('4.4', 'all three reordered with the inverse order: same FFN, but not the order asked for',
     'All three are reordered by the inverse: new unit i is old unit', '''
def reordered(W1, b1, W2, order):
    where = np.argsort(order)
    return W1[:, where], b1[where], W2[where]
'''),
    ('4.4', 'right arrays, but written into the arguments',
     'Right values, but your function changed its input W1, which the', '''
def reordered(W1, b1, W2, order):
    W1[:] = W1[:, order]
    b1[:] = b1[order]
    W2[:] = W2[order]
    return W1, b1, W2
'''),
    ('4.4', 'b1 put right, W2 now reordered along its columns',
     'The columns of W2 moved: a hidden unit is a *row* of W2, W2[order].', '''
def reordered(W1, b1, W2, order):
    neu = [arr[..., order] for arr in (W1, b1, W2)]
    return tuple(neu)
'''),
    ('4.4', 'writes the new order into b1 itself',
     'Right values, but your function changed its input b1, which the', '''
def reordered(W1, b1, W2, order):
    b1[:] = b1[order]
    return W1[:, order], b1, W2[order]
'''),
    ('5.1', 'divides by the number of rows',
     'Divided by the number of rows: divide by the number of all numbers,', '''
def share_of_zeros(a):
    zeros = np.sum(a == 0)
    return zeros / len(a)
'''),
    ('5.1', 'np.isclose: very small numbers count as 0',
     'Small numbers are counted too: a threshold measures the scale, not', '''
def share_of_zeros(a):
    return np.isclose(a, 0).mean()
'''),
    ('5.1', 'share of the numbers that are NOT 0',
     'That is the share of numbers that are *not* zero.', '''
def share_of_zeros(a):
    return np.count_nonzero(a) / a.size
'''),
    ('5.1', 'bracket: compares the mean with 0',
     'The mean of a is compared with 0: compare each number, then take the', '''
def share_of_zeros(a):
    return np.mean(a) == 0
'''),
    ('5.1', 'counts <= 0',
     'Negative numbers are counted too: after GELU they are not zero. a ==', '''
def share_of_zeros(a):
    return np.mean(a <= 0)
'''),
    ('5.2', 'sorts before squaring: large negative values are not among the largest',
     'Signed numbers are sorted: large negative ones write as much as', '''
def top_energy(a, share):
    d_ff = a.shape[1]
    k = round(share * d_ff)
    biggest = np.sort(a, axis=1)[:, d_ff - k:]
    return (biggest ** 2).sum(axis=1) / (a ** 2).sum(axis=1)
'''),
    ('5.2', 'int() in place of round(): k rounded down',
     'The number of units is cut off, not rounded: round(share * d_ff), not', '''
def top_energy(a, share):
    e = np.sort(a ** 2, axis=1)[:, ::-1]
    k = int(share * e.shape[1])
    return e[:, :k].sum(axis=1) / e.sum(axis=1)
'''),
    ('5.2', 'right numbers, but squares and sorts the argument itself',
     'Right values, but your function changed its input a, which the caller', '''
def top_energy(a, share):
    a *= a
    a.sort(axis=1)
    first = a.shape[1] - round(share * a.shape[1])
    return a[:, first:].sum(axis=1) / a.sum(axis=1)
'''),
    ('5.2', 'takes the first k of the sorted squares: the smallest',
     'That is the share of the *smallest* units: sorting puts small numbers', '''
def top_energy(a, share):
    energy = np.sort(a**2, axis=1)
    k = max(1, round(share * a.shape[1]))
    return energy[:, :k].sum(axis=1) / energy.sum(axis=1)
'''),
    ('5.3', 'median of the changes divided by the median of the lengths',
     'The median of the changes divided by the median of the norms: divide', '''
def typical_change(y_new, y):
    change = np.linalg.norm(y_new - y, axis=1)
    length = np.linalg.norm(y, axis=1)
    return np.median(change) / np.median(length)
'''),
    ('5.3', 'divides number by number, takes the length afterwards',
     'Divided number by number before the length was taken: divide the', '''
def typical_change(y_new, y):
    relative = (y_new - y) / y
    return np.median(np.linalg.norm(relative, axis=1))
'''),
    ('5.3', 'arguments in the other order: relative to the new output',
     'Divided by the norm of y_new: the change is relative to y, the', '''
def typical_change(y, y_new):
    d = [np.linalg.norm(n - o) / np.linalg.norm(o) for o, n in zip(y, y_new)]
    return np.median(d)
'''),
    ('5.3', 'difference of the lengths in place of length of the difference',
     'The change of the norm, not the norm of the change: two vectors can', '''
def typical_change(y_new, y):
    len_new = np.linalg.norm(y_new, axis=-1)
    len_old = np.linalg.norm(y, axis=-1)
    return np.median(np.abs(len_new - len_old) / len_old)
'''),
    ('5.3', 'norm of the whole matrix, no axis',
     'One norm over the whole matrix: a single loud token decides it. Take', '''
def typical_change(y_new, y):
    return np.median(np.linalg.norm(y_new - y) / np.linalg.norm(y))
'''),
    ('5.3', 'norm along axis 0: per column, not per token',
     'The norms run over the tokens (axis=0): one norm for each token is', '''
def typical_change(y_new, y):
    diff = np.linalg.norm(y_new - y, axis=0)
    length = np.linalg.norm(y, axis=0)
    return np.median(diff / length)
'''),
    ('5.4', 'only the first matrix is transposed',
     'intermediate.dense.weight is right, output.dense.weight is not', '''
def repaired_bert(x, tensors):
    W1, b1 = tensors["intermediate.dense.weight"].T, tensors["intermediate.dense.bias"]
    W2, b2 = tensors["output.dense.weight"], tensors["output.dense.bias"]
    return gelu(x @ W1 + b1) @ W2 + b2
'''),
    ('5.4', 'reshapes in place of transposing',
     'A weight is reshaped where it should be transposed: .T, not reshape', '''
def repaired_bert(x, tensors):
    d_model = x.shape[-1]
    b1 = tensors["intermediate.dense.bias"]
    b2 = tensors["output.dense.bias"]
    W1 = tensors["intermediate.dense.weight"].reshape(d_model, -1)
    W2 = tensors["output.dense.weight"].reshape(-1, d_model)
    return gelu(x @ W1 + b1) @ W2 + b2
'''),
    ('5.4', 'exchanges the two matrices, because then all shapes fit',
     'The two matrices are exchanged, which makes the shapes fit:', '''
def repaired_bert(x, tensors):
    W1, b1 = tensors["output.dense.weight"], tensors["intermediate.dense.bias"]
    W2, b2 = tensors["intermediate.dense.weight"], tensors["output.dense.bias"]
    return gelu(x @ W1 + b1) @ W2 + b2
'''),
    ('5.4', 'stores the transposed matrices back in the dict',
     'Right values, but your function changed its input tensors, which the', '''
def repaired_bert(x, tensors):
    for key in tensors:
        tensors[key] = tensors[key].T
    h = gelu(x @ tensors["intermediate.dense.weight"] + tensors["intermediate.dense.bias"])
    return h @ tensors["output.dense.weight"] + tensors["output.dense.bias"]
'''),
    ('5.4', 'writes W @ x + b: right for a single token only',
     'W @ x works for one single token only: tokens are rows here, x @ W.T.', '''
def repaired_bert(x, tensors):
    W1, b1 = tensors["intermediate.dense.weight"], tensors["intermediate.dense.bias"]
    W2, b2 = tensors["output.dense.weight"], tensors["output.dense.bias"]
    h = gelu(W1 @ x + b1)
    return W2 @ h + b2
'''),
    ('6.1', 'keys only',
     'A factor 2 is missing: a token keeps a key *and* a value.', '''
def tokens_that_fit(free, n_layers, n_heads, d_head, n_bytes):
    per_token = n_layers * n_heads * d_head * n_bytes
    return free // per_token
'''),
    ('6.1', 'bytes per layer only, layers forgotten',
     'That is the cache of one layer: each of the n_layers keeps its own.', '''
def tokens_that_fit(free, n_layers, n_heads, d_head, n_bytes):
    key = value = n_heads * d_head
    return free // ((key + value) * n_bytes)
'''),
    ('6.1', 'counts numbers, as if a number were a byte',
     'That counts numbers, not bytes: n_bytes is not used.', '''
def tokens_that_fit(free, n_layers, n_heads, d_head, n_bytes):
    numbers = 0
    for layer in range(n_layers):
        numbers += 2 * n_heads * d_head
    return free // numbers
'''),
    ('6.1', 'rounds up with ceil',
     'Rounded up: the last token does not fit.', '''
def tokens_that_fit(free, n_layers, n_heads, d_head, n_bytes):
    return math.ceil(free / (2 * n_layers * n_heads * d_head * n_bytes))
'''),
    ('6.1', 'plain division, a float',
     'Not rounded: the number of tokens is a whole number, rounded down.', '''
def tokens_that_fit(free, n_layers, n_heads, d_head, n_bytes):
    cost = 2 * d_head * n_heads * n_layers * n_bytes
    return free / cost
'''),
    ('6.1', 'no brackets around the product',
     'Brackets: free // a * b divides by a only and multiplies by b.', '''
def tokens_that_fit(free, n_layers, n_heads, d_head, n_bytes):
    return free // 2 * n_layers * n_heads * d_head * n_bytes
'''),
    ('6.2', 'a number that is a multiple already goes up by one more',
     'A number that is a multiple already was raised to the next one: it', '''
def round_up(n, multiple_of):
    return (n // multiple_of + 1) * multiple_of
'''),
    ('6.2', 'rounds to the nearest multiple',
     'Rounded to the nearest multiple: always up is asked for.', '''
def round_up(n, multiple_of):
    return round(n / multiple_of) * multiple_of
'''),
    ('6.2', 'returns how many multiples, not the number',
     'The number of multiples came back: multiply it by multiple_of.', '''
def round_up(n, multiple_of):
    anzahl = math.ceil(n / multiple_of)
    return anzahl
'''),
    ('6.2', 'adds the remainder in place of what is missing',
     'The remainder n % multiple_of was added: the distance to the next', '''
def round_up(n, multiple_of):
    rest = n % multiple_of
    return n if rest == 0 else n + rest
'''),
    ('6.3', 'np.split of the fused matrix into n, then each piece in half',
     'W_fused is cut straight into n pieces: then some devices get only', '''
def device_part(W_fused, W_down, k, n):
    fused = np.split(W_fused, n, axis=1)[k]
    W_gate, W_up = np.split(fused, 2, axis=1)
    return W_gate, W_up, np.split(W_down, n, axis=0)[k]
'''),
    ('6.3', 'takes up from the first half and gate from the second',
     'Gate and up are swapped: the gate is the first half of W_fused.', '''
def device_part(W_fused, W_down, k, n):
    f = W_fused.shape[1] // 2
    w = f // n
    lo, hi = k * w, (k + 1) * w
    return W_fused[:, f + lo:f + hi], W_fused[:, lo:hi], W_down[lo:hi, :]
'''),
    ('6.3', 'forgets to cut W_down',
     'W_down is not cut: device k keeps the rows of its own units.', '''
def device_part(W_fused, W_down, k, n):
    gate, up = np.hsplit(W_fused, 2)
    return np.hsplit(gate, n)[k], np.hsplit(up, n)[k], W_down
'''),
    ('6.3', 'every n-th unit, strided',
     'Every n-th unit was taken: that split works, but device k shall have', '''
def device_part(W_fused, W_down, k, n):
    f = W_down.shape[0]
    idx = np.arange(k, f, n)
    return W_fused[:, idx], W_fused[:, f + idx], W_down[idx]
'''),
    ('6.3', 'counts devices from 1',
     'k counts from 0: device 0 has the first units.', '''
def device_part(W_fused, W_down, k, n):
    f = W_down.shape[0]
    w = f // n
    start, stop = (k - 1) * w, k * w
    gate, up = W_fused[:, :f], W_fused[:, f:]
    return gate[:, start:stop], up[:, start:stop], W_down[start:stop]
'''),
    ('6.3', 'interleaved layout assumed',
     'The columns of gate and up are taken alternately: here all gates come', '''
def device_part(W_fused, W_down, k, n):
    gate, up = W_fused[:, 0::2], W_fused[:, 1::2]
    return np.split(gate, n, axis=1)[k], np.split(up, n, axis=1)[k], np.split(W_down, n)[k]
'''),
    ('6.4', 'key-value heads repaired, FFN still with two matrices',
     'The attention is right now; the gated FFN has three matrices: gate,', '''
def repaired_block_parameters(d_model, d_ff, n_heads, n_kv_heads):
    head = d_model // n_heads
    attention = 2 * d_model * d_model + 2 * d_model * n_kv_heads * head
    ffn = 2 * d_model * d_ff
    return attention + ffn
'''),
    ('6.4', 'size of a head computed from n_kv_heads, so nothing changes in attention',
     'The FFN is right now; in the attention, W_k and W_v have only', '''
def repaired_block_parameters(d_model, d_ff, n_heads, n_kv_heads):
    head_dim = d_model // n_kv_heads
    W_q = W_o = d_model * d_model
    W_k = W_v = d_model * (n_kv_heads * head_dim)
    return W_q + W_k + W_v + W_o + 3 * d_model * d_ff
'''),
    ('6.4', 'W_o made small as well',
     'W_q is made smaller too: it keeps all heads, as W_o does.', '''
def repaired_block_parameters(d_model, d_ff, n_heads, n_kv_heads):
    kv = d_model // n_heads * n_kv_heads
    attention = d_model * d_model + 3 * d_model * kv
    ffn = 3 * d_model * d_ff                 # gate, up, down
    return attention + ffn
'''),
    ('6.4', 'ratio upside down: n_heads / n_kv_heads',
     'The ratio is upside down: n_kv_heads / n_heads is smaller than 1.', '''
def repaired_block_parameters(d_model, d_ff, n_heads, n_kv_heads):
    group = n_heads // n_kv_heads            # 4 query heads share
    big = 2 * d_model ** 2
    small = 2 * d_model ** 2 * group
    return big + small + 3 * d_model * d_ff
'''),
    ('6.4', '/ instead of //: a float comes out',
     'Right value, but 1004832.0 is a float: it should be a whole number;', '''
def repaired_block_parameters(d_model, d_ff, n_heads, n_kv_heads):
    d_kv = d_model / n_heads * n_kv_heads
    attention = 2 * d_model**2 + 2 * d_model * d_kv
    return attention + 3 * d_model * d_ff
'''),
    ('7.1', 'subtracts 1 instead of 1/d',
     '1 is subtracted everywhere: the mean is the sum *divided by d*.', '''
def centring_matrix(d):
    return np.identity(d) - np.ones((d, d))
'''),
    ('7.1', 'the matrix that gives the mean',
     'That gives the mean itself: it is to be subtracted from x.', '''
def centring_matrix(d):
    C = np.zeros((d, d))
    C[:, :] = 1 / d
    return C
'''),
    ('7.1', 'off-diagonal only, diagonal left at 1',
     'The diagonal stays 1: the number itself is a part of the mean, so 1 -', '''
def centring_matrix(d):
    C = np.full((d, d), -1 / d)
    np.fill_diagonal(C, 1)
    return C
'''),
    ('7.1', 'mean of the other numbers, divides by d - 1',
     'That subtracts the mean of the *other* numbers: the mean is over all', '''
def centring_matrix(d):
    C = np.full((d, d), -1 / (d - 1))
    for i in range(d):
        C[i, i] = 1
    return C
'''),
    ('7.1', 'bracket around both, divided by d',
     'Brackets: only the 1 is divided by d, not the identity matrix.', '''
def centring_matrix(d):
    one = np.ones((d, d))
    return (np.eye(d) - one) / d
'''),
    ('7.1', 'np.ones taken for the identity',
     'np.ones is a matrix full of ones: the one that leaves x as it is, is', '''
def centring_matrix(d):
    return np.ones((d, d)) - np.ones((d, d)) / d
'''),
    ('7.2', 'multiplies gain by broadcasting onto the columns',
     'The gain is put on the columns of W1: it belongs to the numbers that', '''
def fold_norm(gain, bias, W1, b1):
    W = W1 * gain
    b = bias @ W1 + b1
    return W, b
'''),
    ('7.2', 'sends the bias through the folded matrix',
     "The norm's bias is multiplied by the gain: it is added after the gain,", '''
def fold_norm(gain, bias, W1, b1):
    W = np.diag(gain).astype(W1.dtype) @ W1
    b = b1 + bias @ W
    return W, b
'''),
    ('7.2', 'adds the two biases',
     "The norm's bias is not lifted: it goes through W1, like everything", '''
def fold_norm(gain, bias, W1, b1):
    return (W1.T * gain).T, b1 + bias
'''),
    ('7.2', 'forgets the old bias b1',
     "b1 is lost: the norm's bias comes on top of it.", '''
def fold_norm(gain, bias, W1, b1):
    W = gain.reshape(-1, 1) * W1
    return W, np.dot(bias, W1)
'''),
    ('7.2', 'leaves the bias of the norm out',
     "The norm's bias is missing in b.", '''
def fold_norm(gain, bias, W1, b1):
    W = np.einsum("i,ij->ij", gain, W1)
    return W, b1
'''),
    ('7.2', 'right, but W1 is scaled in place',
     'Right values, but your function changed its input W1, which the caller', '''
def fold_norm(gain, bias, W1, b1):
    b = b1 + bias @ W1
    W1 *= gain[:, None]
    return W1, b
'''),
    ('7.3', 'sets the forbidden scores to 0 (np.tril) before the softmax, but exp(0) is 1',
     'The future scores are 0 instead of -inf: exp(0) is 1, so they still', '''
def causal_weights(scores):
    masked = np.tril(scores)
    e = np.exp(masked)
    return e / e.sum(axis=-1, keepdims=True)
'''),
    ('7.3', "writes -inf into the caller's scores in place",
     'Right values, but your function changed its input scores, which the', '''
def causal_weights(scores):
    T = scores.shape[-1]
    future = np.triu(np.ones((T, T), bool), 1)
    scores[..., future] = -np.inf
    weights = np.exp(scores)
    return weights / weights.sum(-1, keepdims=True)
'''),
    ('7.3', 'takes T = len(scores) like the slow version, so the mask has the wrong size for batches',
     'Right for', '''
def causal_weights(scores):
    T = len(scores)
    mask = np.triu(np.ones((T, T), bool), 1)
    s = np.where(mask, -np.inf, scores)
    return np.exp(s) / np.exp(s).sum(axis=-1, keepdims=True)
'''),
    ('7.3', 'ordinary softmax first, future weights set to 0 afterwards: the rows do not sum to 1',
     'Masked after the softmax: the rows no longer sum to 1. Hide the', '''
def causal_weights(scores):
    w = softmax(scores)
    return np.tril(w)
'''),
    ('7.4', "parallel block: the FFN reads the norm of the block's input, not of the stream after attention",
     "Both parts read the block's input side by side: the FFN should read", '''
def repaired_block(x, attend, ffn, norm1, norm2):
    attention_part = attend(norm1(x))
    ffn_part = ffn(norm2(x))
    return x + attention_part + ffn_part
'''),
    ('7.4', "right sum, but with += on the argument: the caller's x is overwritten",
     'Right values, but your function changed its input x, which the caller', '''
def repaired_block(x, attend, ffn, norm1, norm2):
    x += attend(norm1(x))
    x += ffn(norm2(x))
    return x
'''),
    ('7.4', 'copy and paste: norm1 is used for the FFN too, norm2 never',
     'norm1 is used twice: the FFN has a norm of its own, norm2.', '''
def repaired_block(x, attend, ffn, norm1, norm2):
    x = x + attend(norm1(x))
    x = x + ffn(norm1(x))
    return x
'''),
    ('7.4', "adds the FFN's result to the original x, so what attention wrote is lost from the stream",
     "The FFN's result is added to the block's input: add it to the stream", '''
def repaired_block(x, attend, ffn, norm1, norm2):
    h = x + attend(norm1(x))
    return x + ffn(norm2(h))
'''),
    ('7.4', "the FFN reads attention's output instead of the stream",
     "The FFN reads attention's output alone: it reads the stream after", '''
def repaired_block(x, attend, ffn, norm1, norm2):
    a = attend(norm1(x))
    f = ffn(norm2(a))
    return x + a + f
'''),
    ('8.1', 'base-2 logarithm: the answer is in bits',
     'That is in bits (log2): nats use the natural logarithm, np.log.', '''
def nats(probabilities, targets):
    n = len(targets)
    return -np.log2(probabilities[np.arange(n), targets]).mean()
'''),
    ('8.1', 'indexes [:, targets]: every row is paired with every target',
     "p[:, targets] takes every target's column for every example: row i", '''
def nats(probabilities, targets):
    p_right = probabilities[:, targets]
    return np.mean(-np.log(p_right))
'''),
    ('8.1', 'takes the mean first and the logarithm afterwards',
     'The logarithm of the mean: take the logarithm of each probability', '''
def nats(probabilities, targets):
    total = 0
    for i in range(len(targets)):
        total += probabilities[i, targets[i]]
    return -np.log(total / len(targets))
'''),
    ('8.1', 'one-hot times log, and then the mean over all n * n_classes entries instead of over n',
     'Divided by the number of classes too: the mean runs over examples', '''
def nats(probabilities, targets):
    one_hot = np.eye(probabilities.shape[1])[targets]
    return -np.mean(one_hot * np.log(probabilities))
'''),
    ('8.1', 'minus sign forgotten',
     'The minus is missing: log of a probability is negative, a loss is', '''
def nats(probabilities, targets):
    n = len(targets)
    right = probabilities[np.arange(n), targets]
    return np.log(right).sum() / n
'''),
    ('8.2', 'argmax along axis 0: the best example for each class instead of the best class of each example',
     'The largest score of each *column* was taken (axis=0): each row is an', '''
def accuracy(scores, targets):
    answers = np.argmax(scores, axis=0)
    return np.mean(answers == targets)
'''),
    ('8.2', 'argmax without an axis: one position in the flattened table',
     'argmax without an axis looks at the whole table: each row is an', '''
def accuracy(scores, targets):
    return (np.argmax(scores) == targets).mean()
'''),
    ('8.2', 'counts an example as right only if its target has a probability above one half',
     'A target with less than half of the probability can still be the', '''
def accuracy(scores, targets):
    e = np.exp(scores - np.max(scores, axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    p_target = p[np.arange(len(targets)), targets]
    return np.mean(p_target > 0.5)
'''),
    ('8.2', "rounds the share to two digits 'for a nicer number'",
     'expected', '''
def accuracy(scores, targets):
    hits = [int(np.argmax(s)) == int(t) for s, t in zip(scores, targets)]
    return round(sum(hits) / len(hits), 2)
'''),
    ('8.2', 'np.max: compares the score, not its position',
     'Always 0: the scores themselves are compared with the targets (argmax', '''
def accuracy(scores, targets):
    return np.mean(np.max(scores, axis=1) == targets)
'''),
    ('8.2', 'number of right answers instead of the share',
     'The number of right answers: divide by how many there are.', '''
def accuracy(scores, targets):
    predicted = scores.argmax(axis=1)
    return (predicted == targets).sum()
'''),
    ('8.3', "shifts the scores in the logarithm only; the target's score is taken unshifted",
     "The largest score was subtracted for exp, but not from the target's", '''
def loss_from_scores(scores, targets):
    m = scores.max(axis=1, keepdims=True)
    log_sum = np.log(np.exp(scores - m).sum(axis=1))
    right = scores[np.arange(len(targets)), targets]
    return (log_sum - right).mean()
'''),
    ('8.3', "subtracts the largest score of the whole table instead of each row's: low rows underflow to log(0)",
     'log(0): rows far below the number that you subtract vanish. Each row', '''
def loss_from_scores(scores, targets):
    z = scores - scores.max()
    return np.mean(np.log(np.sum(np.exp(z), axis=1)) - z[range(len(z)), targets])
'''),
    ('8.3', 'makes probabilities first and takes log(p + 1e-12): the loss can never be above 27.6',
     'A small number inside the logarithm caps the loss: stay with the', '''
def loss_from_scores(scores, targets):
    shifted = scores - np.max(scores, axis=-1, keepdims=True)
    probs = np.exp(shifted) / np.exp(shifted).sum(axis=-1, keepdims=True)
    chosen = probs[np.arange(scores.shape[0]), targets]
    return -np.mean(np.log(chosen + 1e-12))
'''),
    ('8.3', "shifts with -=, so the caller's scores are changed",
     'Right values, but your function changed its input scores, which the', '''
def loss_from_scores(scores, targets):
    scores -= scores.max(axis=1, keepdims=True)
    losses = []
    for s, t in zip(scores, targets):
        losses.append(np.log(np.exp(s).sum()) - s[t])
    return sum(losses) / len(losses)
'''),
    ('8.3', 'safe softmax, then the logarithm: log(0) for hopeless targets',
     'The result is inf: something became 0 or inf before its logarithm.', '''
def loss_from_scores(scores, targets):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    p = e / e.sum(axis=1, keepdims=True)
    return -np.log(p[np.arange(len(targets)), targets]).mean()
'''),
    ('8.4', 'bias of unit 1 is -0.5 (halfway between) instead of -1: 1 XOR 1 gives -1',
     'For 1, 1 the answer is -1: which unit needs a bias, and how large?', '''
def repaired_xor(x):
    W1, b1 = np.array([[1, 1], [1, 1]]), np.array([0, -0.5])
    h = np.maximum(x @ W1 + b1, 0)
    return h @ np.array([1, -2])
'''),
    ('8.4', "uses the notebook's global `bits` instead of the argument x",
     'Your function gives the same answer, array([0, 1, 1, 0]), for every', '''
bits = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
def repaired_xor(x):
    W1, b1 = np.array([[1, 1], [1, 1]]), np.array([0, -1])
    h = np.maximum(bits @ W1 + b1, 0)
    return h @ np.array([1, -2])
'''),
    ('8.4', 'output weights as a column matrix: result has shape (..., 1)',
     'expected', '''
def repaired_xor(x):
    W1 = np.array([[1, 1], [1, 1]])
    b1 = np.array([0, -1])
    W2 = np.array([[1], [-2]])
    return np.maximum(x @ W1 + b1, 0) @ W2
'''),
    ('8.4', 'takes the two bits as columns x[:, 0], x[:, 1]: works for 2-D x only',
     'numbers differ, for', '''
def repaired_xor(x):
    a, b = x[:, 0], x[:, 1]
    unit0 = np.maximum(a + b, 0)
    unit1 = np.maximum(a + b - 1, 0)
    return unit0 - 2 * unit1
'''),
    ('8.4', 'right bias, but also changes -2 to -1: that is OR',
     'For 1, 1 the answer is 1 instead of 0 (that is OR): the second unit', '''
def repaired_xor(x):
    W1, b1 = np.array([[1, 1], [1, 1]]), np.array([0, -1])
    h = np.maximum(x @ W1 + b1, 0)
    return h @ np.array([1, -1])
'''),
    ('8.4', 'bias with the wrong sign',
     'The bias of the second unit has the wrong sign: it should speak only', '''
def repaired_xor(x):
    W1 = np.array([[1, 1], [1, 1]])
    b1 = np.array([0, 1])
    h = np.maximum(x @ W1 + b1, 0)
    return h @ np.array([1, -2])
'''),
    ('9.1', 'looks at the sign of dy instead of the sign of h',
     'dy was cut where dy is negative: what counts is where *h* is positive.', '''
def relu_backward(dy, h):
    return dy * (dy > 0)
'''),
    ('9.1', 'multiplies by ReLU itself instead of by its slope',
     'That is dy * relu(h): the slope of ReLU is 1 where h > 0, not its', '''
def relu_backward(dy, h):
    relu = np.where(h > 0, h, 0)
    return dy * relu
'''),
    ('9.1', "sets entries of dy to 0 in place: the caller's dy is changed",
     'Right values, but your function changed its input dy, which the', '''
def relu_backward(dy, h):
    dy[h <= 0] = 0
    return dy
'''),
    ('9.1', 'slope collected in np.zeros (float64), so float32 comes back as float64',
     'Right values, but float32 came back as float64: look for np.zeros,', '''
def relu_backward(dy, h):
    slope = np.zeros(h.shape)
    slope[h > 0] = 1
    return dy * slope
'''),
    ('9.2', 'reshapes instead of transposing to make the shapes fit',
     'numbers differ, for', '''
def linear_backward(x, W, dy):
    T, d = x.shape
    f = W.shape[1]
    dx = dy @ W.reshape(f, d)
    dW = x.reshape(d, T) @ dy
    db = dy.sum(axis=0)
    return dx, dW, db
'''),
    ('9.2', 'db keeps an axis of length 1: shape (1, f)',
     'expected', '''
def linear_backward(x, W, dy):
    dx = dy @ W.T
    dW = x.T @ dy
    db = dy.sum(axis=0, keepdims=True)
    return dx, dW, db
'''),
    ('9.2', 'mean over the tokens instead of sum in dW and db',
     'dW and db are both divided by the number of tokens: the loss has done', '''
def linear_backward(x, W, dy):
    n_tokens = len(x)
    return (np.einsum("tf,df->td", dy, W),
            np.einsum("td,tf->df", x, dy) / n_tokens,
            np.mean(dy, axis=0))
'''),
    ('9.2', 'dW the other way round (dy.T @ x), shape (f, d)',
     'dx and db are right; dW is transposed: a gradient has the shape of', '''
def linear_backward(x, W, dy):
    grad_x = np.dot(dy, W.T)
    grad_W = np.dot(dy.T, x)
    grad_b = np.dot(np.ones(len(dy), dy.dtype), dy)
    return grad_x, grad_W, grad_b
'''),
    ('9.2', 'db summed along the wrong axis',
     'dx and dW are right; db is summed over the wrong axis: over tokens,', '''
def linear_backward(x, W, dy):
    return dy @ W.T, x.T @ dy, dy.sum(axis=1)
'''),
    ('9.3', 'no brackets around 2 * step: divides by 2 and multiplies by step',
     'Multiplied by step / 2 where (2 * step) belongs in brackets: a / 2 *', '''
def slopes(f, w, step):
    result = np.zeros(w.shape)
    for i in np.ndindex(w.shape):
        plus, minus = w.copy(), w.copy()
        plus[i] += step
        minus[i] -= step
        result[i] = (f(plus) - f(minus)) / 2 * step
    return result
'''),
    ('9.3', 'one-sided slope: from w to w + step only',
     'One-sided, (f(w + step) - f(w)) / step: step to both sides; the error', '''
def slopes(f, w, step):
    base = f(w)
    out = np.zeros(w.shape)
    for idx in np.ndindex(w.shape):
        moved = w.copy()
        moved[idx] += step
        out[idx] = (f(moved) - base) / step
    return out
'''),
    ('9.3', 'no copy: moves the numbers of w itself and never puts them back',
     'Numbers that were moved are not put back before the next one is', '''
def slopes(f, w, step):
    result = np.zeros(w.shape)
    for i in np.ndindex(w.shape):
        w[i] += step
        above = f(w)
        w[i] -= 2 * step
        below = f(w)
        result[i] = (above - below) / (2 * step)
    return result
'''),
    ('9.3', 'for i in range(len(w)): moves a whole row at once when w is 2-D',
     'A whole row of w is moved at once: for i in range(len(w)) counts', '''
def slopes(f, w, step):
    result = np.zeros(w.shape)
    for i in range(len(w)):
        plus = w.copy()
        minus = w.copy()
        plus[i] += step
        minus[i] -= step
        result[i] = (f(plus) - f(minus)) / (2 * step)
    return result
'''),
    ('9.3', 'plus and minus are no copies',
     'plus = w is no copy: both steps go into the same array, and the', '''
def slopes(f, w, step):
    result = np.zeros(w.shape)
    for i in np.ndindex(w.shape):
        plus = w
        minus = w
        plus[i] += step
        minus[i] -= step
        result[i] = (f(plus) - f(minus)) / (2 * step)
    return result
'''),
    ('9.4', "takes SiLU's slope at up instead of at gate",
     'd_up is right; d_gate has the slope at up: it is taken at gate, where', '''
def repaired_backward(dp, gate, up):
    d_gate = dp * up * ACTIVATIONS["silu"].derivative(up)
    d_up = dp * silu(gate)
    return d_gate, d_up
'''),
    ('9.4', "uses sigmoid(gate) as SiLU's slope and forgets the second term",
     "d_up is right; d_gate has sigmoid(gate), a part of silu's slope: silu", '''
def repaired_backward(dp, gate, up):
    return dp * up * sigmoid(gate), dp * silu(gate)
'''),
    ('9.4', "brackets wrong in SiLU's slope: s * (1 + gate) * (1 - s)",
     "d_up is right; in d_gate a bracket of silu's slope is misplaced.", '''
def repaired_backward(dp, gate, up):
    s = sigmoid(gate)
    silu_slope = s * (1 + gate) * (1 - s)
    d_gate = dp * up * silu_slope
    d_up = dp * gate * s
    return d_gate, d_up
'''),
    ('9.4', 'puts the slope into both results: d_up loses silu(gate), which was right before',
     "d_gate is right; d_up has silu's slope: up is only multiplied, so its", '''
def repaired_backward(dp, gate, up):
    slope = ACTIVATIONS["silu"].derivative(gate)
    d_gate = dp * up * slope
    d_up = dp * slope
    return d_gate, d_up
'''),
    ('9.4', "the sigmoid's slope instead of SiLU's",
     'd_up is right; d_gate has the slope of the sigmoid: silu is gate *', '''
def repaired_backward(dp, gate, up):
    s = sigmoid(gate)
    d_gate = dp * up * s * (1 - s)
    d_up = dp * silu(gate)
    return d_gate, d_up
'''),
    ('9.4', 'replaces up by the slope: factor up missing',
     'd_up is right; d_gate lacks the factor up.', '''
def repaired_backward(dp, gate, up):
    d_gate = dp * ACTIVATIONS["silu"].derivative(gate)
    d_up = dp * silu(gate)
    return d_gate, d_up
'''),
    ('10.1', 'the right k experts, but the best one last',
     'The right experts, but the largest should come first.', '''
def top_k(probabilities, k):
    return np.argsort(probabilities, axis=-1)[..., -k:]
'''),
    ('10.1', 'reverses and cuts with [:, ...]: works for 2-D only',
     'expected', '''
def top_k(probabilities, k):
    order = np.argsort(probabilities)
    order = order[:, ::-1]
    return order[:, :k]
'''),
    ('10.1', "returns the k largest probabilities instead of the experts' numbers",
     'Those are the probabilities: the *numbers of the experts* are asked', '''
def top_k(probabilities, k):
    return -np.sort(-probabilities, axis=-1)[..., :k]
'''),
    ('10.1', "k times argmax, crossing out the winner in the caller's array",
     'Right values, but your function changed its input probabilities,', '''
def top_k(probabilities, k):
    picks = []
    for _ in range(k):
        best = probabilities.argmax(axis=-1)
        np.put_along_axis(probabilities, best[..., None], -1, axis=-1)
        picks.append(best)
    return np.stack(picks, axis=-1)
'''),
    ('10.1', '[::-1][:k] turns and cuts the first axis, right for one token only',
     '[::-1] turned the tokens round: the order along the *last* axis was', '''
def top_k(probabilities, k):
    return np.argsort(probabilities)[::-1][:k]
'''),
    ('10.2', 'weights are those of experts 0 to k-1 instead of those of the chosen experts',
     'The weights are those of experts 0 to k - 1: take those of the chosen', '''
def moe(x, W_router, experts, k):
    p = softmax(x @ W_router)
    chosen = np.argsort(-p, axis=1)[:, :k]
    weights = p[:, :k]
    weights = weights / weights.sum(axis=1, keepdims=True)
    out = []
    for t in range(len(x)):
        out.append(sum(weights[t, j] * experts[chosen[t, j]](x[t]) for j in range(k)))
    return np.stack(out)
'''),
    ('10.2', "weights the expert's input instead of its output",
     "The weight is put on the expert's input: multiply what the expert", '''
def moe(x, W_router, experts, k):
    rows = []
    for token in x:
        scores = token @ W_router
        prob = np.exp(scores) / np.exp(scores).sum()
        best = np.argsort(-prob)[:k]
        weight = prob[best] / prob[best].sum()
        rows.append(sum(experts[e](w * token) for e, w in zip(best, weight)))
    return np.stack(rows)
'''),
    ('10.2', 'divides by the sum of the chosen probabilities of all tokens together (no axis)',
     "All tokens share one sum: divide each token's weights by their own", '''
def moe(x, W_router, experts, k):
    p = softmax(x @ W_router)
    chosen = np.argsort(-p, axis=1)[:, :k]
    weights = np.take_along_axis(p, chosen, axis=1)
    weights = weights / weights.sum()
    return np.stack([sum(wi * experts[ci](tok) for wi, ci in zip(w, c))
                     for w, c, tok in zip(weights, chosen, x)])
'''),
    ('10.2', 'chosen probabilities not divided by their sum',
     'The weights of the chosen experts are not renormalised: divide them', '''
def moe(x, W_router, experts, k):
    p = softmax(x @ W_router)
    chosen = np.argsort(-p, axis=-1)[:, :k]
    out = np.zeros_like(x)
    for t in range(len(x)):
        for e in chosen[t]:
            out[t] += p[t, e] * experts[e](x[t])
    return out
'''),
    ('10.2', 'np.zeros without dtype: float32 becomes float64',
     'Right values, but float32 came back as float64: look for np.zeros,', '''
def moe(x, W_router, experts, k):
    p = softmax(x @ W_router)
    chosen = np.argsort(-p, axis=1)[:, :k]
    w = np.take_along_axis(p, chosen, axis=1)
    w = w / w.sum(axis=1, keepdims=True)
    y = np.zeros(x.shape)
    for t in range(x.shape[0]):
        for i in range(k):
            y[t] += w[t, i] * experts[chosen[t, i]](x[t])
    return y
'''),
    ('10.2', 'runs the experts 0 to k-1 instead of the chosen ones',
     'Experts 0 to k - 1 are used with the chosen weights: experts[e] for', '''
def moe(x, W_router, experts, k):
    p = softmax(x @ W_router)
    chosen = np.argsort(-p, axis=1)[:, :k]
    weights = np.take_along_axis(p, chosen, axis=1)
    weights = weights / weights.sum(axis=1, keepdims=True)
    out = np.zeros_like(x)
    for e in range(k):
        out += weights[:, e:e + 1] * experts[e](x)
    return out
'''),
    ('10.3', 'divides the counts by the number of tokens, not by the number of choices (right for k = 1 only)',
     'f is divided by the number of tokens: divide by the number of', '''
def balancing_loss(probabilities, choices):
    T, n_experts = probabilities.shape
    f = np.bincount(choices.ravel(), minlength=n_experts) / T
    P = probabilities.mean(axis=0)
    return n_experts * np.sum(f * P)
'''),
    ('10.3', 'bincount without minlength: too short when the last expert was never chosen',
     'it stopped with ValueError', '''
def balancing_loss(probabilities, choices):
    counts = np.bincount(choices.flatten())
    f = counts / choices.size
    P = np.mean(probabilities, axis=0)
    return probabilities.shape[1] * (f * P).sum()
'''),
    ('10.3', "ignores choices and recounts each token's most probable expert",
     'Only the first choice of each token is counted: all top_k count.', '''
def balancing_loss(probabilities, choices):
    n = probabilities.shape[-1]
    winner = probabilities.argmax(axis=-1)
    f = (winner[:, None] == np.arange(n)).mean(axis=0)
    return n * f @ probabilities.mean(axis=0)
'''),
    ('10.3', 'P is the mean of the whole table (axis forgotten), so the result is always 1',
     'Always 1: is P the mean of the whole table? Take it over the tokens', '''
def balancing_loss(probabilities, choices):
    n_experts = probabilities.shape[1]
    f_e = np.bincount(choices.ravel(), minlength=n_experts) / choices.size
    P_e = probabilities.mean()
    return n_experts * (f_e * P_e).sum()
'''),
    ('10.3', 'factor n_experts forgotten',
     'The factor n_experts is missing, or divided away again (mean instead', '''
def balancing_loss(probabilities, choices):
    n = probabilities.shape[1]
    counts = np.bincount(choices.ravel(), minlength=n)
    f = counts / choices.size
    P = np.mean(probabilities, axis=0)
    return np.sum(f * P)
'''),
    ('10.4', 'drops the division for every k: weights no longer sum to 1 for k > 1',
     'k = 1 is right now, but for k > 1 the weights should still sum to 1.', '''
def repaired_weights(probabilities, k):
    return -np.sort(-probabilities, axis=-1)[..., :k]
'''),
    ('10.4', 'k = 1 with max and no keepdims: shape (...) instead of (..., 1)',
     'expected', '''
def repaired_weights(probabilities, k):
    if k == 1:
        return probabilities.max(axis=-1)
    top = -np.sort(-probabilities, axis=-1)[..., :k]
    return top / top.sum(axis=-1, keepdims=True)
'''),
    ('10.4', 'k = 1 returns the probability of expert 0, not of the best expert',
     'For k = 1 that is the probability of expert 0: take the largest.', '''
def repaired_weights(probabilities, k):
    if k > 1:
        top = -np.sort(-probabilities, axis=-1)[..., :k]
        return top / top.sum(axis=-1, keepdims=True)
    else:
        return probabilities[..., :k]
'''),
    ('10.4', "sorts the caller's array in place",
     'Right values, but your function changed its input probabilities,', '''
def repaired_weights(probabilities, k):
    probabilities.sort(axis=-1)
    top = probabilities[..., ::-1][..., :k]
    if k != 1:
        top = top / top.sum(axis=-1, keepdims=True)
    return top
'''),
    ('11.1', 'tests only the dtype that x happens to have',
     'Only the dtype of x as it came is tried: a layer that always returns', '''
def keeps_dtype(layer, x):
    return layer(x).dtype == x.dtype
'''),
    ('11.1', 'compares with `is`: a dtype object is never the class np.float32, so always False',
     'False for every layer: convert the *input* with x.astype(...), and', '''
def keeps_dtype(layer, x):
    first = layer(x.astype(np.float32)).dtype is np.float32
    second = layer(x.astype(np.float64)).dtype is np.float64
    return first and second
'''),
    ('11.1', 'casts the output instead of the input, so always True',
     'True for every layer: give the layer an input of each dtype, and look', '''
def keeps_dtype(layer, x):
    y32 = layer(x).astype(np.float32)
    y64 = layer(x).astype(np.float64)
    return y32.dtype == np.float32 and y64.dtype == np.float64
'''),
    ('11.1', '`or` instead of `and`: one kept dtype is enough',
     'It is enough for you that one of the two dtypes is kept: both must be.', '''
def keeps_dtype(layer, x):
    ok = False
    for dt in (np.float32, np.float64):
        if layer(x.astype(dt)).dtype == dt:
            ok = True
    return ok
'''),
    ('11.1', 'tests float32 only',
     'Only float32 is tried: a layer that always returns float32 passes.', '''
def keeps_dtype(layer, x):
    y = layer(x.astype(np.float32))
    return y.dtype == np.float32
'''),
    ('11.1', 'takes for granted that x is float64',
     'x itself may be float32 or float64: give the layer one of each,', '''
def keeps_dtype(layer, x):
    small = layer(x.astype(np.float32)).dtype == np.float32
    big = layer(x).dtype == np.float64
    return small and big
'''),
    ('11.2', 'changes the last token only: finds layers that look ahead, not those that look back',
     'Tokens that look at an *earlier* one are not found: change every', '''
def mixes_tokens(layer, x):
    y = layer(x.copy())
    changed = x.copy()
    changed[-1] += 1.5 * np.arange(1, x.shape[1] + 1)
    y2 = layer(changed)
    return not np.allclose(y[:-1], y2[:-1])
'''),
    ('11.2', 'return False in the else branch: gives up after the first token',
     'Tokens that look at a *later* one are not found: change every token,', '''
def mixes_tokens(layer, x):
    y = layer(x.copy())
    for t in range(len(x)):
        other = x.copy()
        other[t] = other[t] ** 2 + np.arange(x.shape[1]) + 3
        z = layer(other)
        if not np.array_equal(np.delete(y, t, axis=0), np.delete(z, t, axis=0)):
            return True
        else:
            return False
'''),
    ('11.2', 'looks at the direct neighbours t-1 and t+1 only',
     'A token that looks at a distant one is not found: change every token,', '''
def mixes_tokens(layer, x):
    before = layer(x.copy())
    for t in range(x.shape[0]):
        x2 = x.copy()
        x2[t] = np.linspace(-5, 7, x.shape[1])
        after = layer(x2)
        if t > 0 and not np.allclose(before[t - 1], after[t - 1]):
            return True
        if t < len(x) - 1 and not np.allclose(before[t + 1], after[t + 1]):
            return True
    return False
'''),
    ('11.2', 'forgets the copy: the changes pile up in x, so every ordinary layer seems to mix',
     'True for every layer: is the changed token itself left out, is x', '''
def mixes_tokens(layer, x):
    y = layer(x)
    for t in range(len(x)):
        x2 = x
        x2[t] = x2[t] * 2 + 1
        y2 = layer(x2)
        if (np.delete(y2, t, axis=0) != np.delete(y, t, axis=0)).any():
            return True
    return False
'''),
    ('11.3', 'before = x[:] is a view (a copy for lists only), so always False',
     'False for every layer: either `before` is no copy (x, x[:]), or the', '''
def changes_input(layer, x):
    before = x[:]
    layer(x)
    return not np.array_equal(before, x)
'''),
    ('11.3', '.all(): True only if every single number was changed',
     'True only if *every* number has changed: one is enough (any, not all).', '''
def changes_input(layer, x):
    before = x.copy()
    layer(x)
    return bool((before != x).all())
'''),
    ('11.3', 'compares the sums only: numbers that trade places are not noticed',
     'Only the sum (or mean) is compared: numbers that trade places are not', '''
def changes_input(layer, x):
    sum_before = x.sum()
    _ = layer(x)
    sum_after = x.sum()
    return not np.isclose(sum_before, sum_after)
'''),
    ('11.3', "compares the layer's output with the input instead of the input before and after",
     'True for every layer: compare the numbers of x before and after the', '''
def changes_input(layer, x):
    before = x.copy()
    after = layer(x)
    return not np.array_equal(before, after)
'''),
    ('11.4', 'np.where with two exp forms: both are computed, so large numbers still warn',
     'Right values, but NumPy warned: overflow encountered in exp. Some', '''
def repaired_patient(x, W_gate, W_up, W_down):
    gate = x @ W_gate
    up = x @ W_up
    act = np.where(gate > 0, gate / (1 + np.exp(-gate)), gate * np.exp(gate) / (1 + np.exp(gate)))
    return (act * up) / math.sqrt(W_up.shape[1]) @ W_down
'''),
    ('11.4', 'np.sqrt instead of math.sqrt: a float64 scalar that makes everything float64',
     'Right values, but float32 came back as float64: look for np.zeros,', '''
def repaired_patient(x, W_gate, W_up, W_down):
    gate = x @ W_gate
    up = x @ W_up
    p = gate / 2 * (1 + np.tanh(gate / 2)) * up
    return p / np.sqrt(W_up.shape[1]) @ W_down
'''),
    ('11.4', 'tanh form of SiLU remembered wrongly: tanh(gate) instead of tanh(gate / 2)',
     'tanh gets the wrong argument: exercise 2.2 has the form.', '''
def repaired_patient(x, W_gate, W_up, W_down):
    g = x @ W_gate
    u = x @ W_up
    activated = 0.5 * g * (1 + np.tanh(g))
    return (activated * u / math.sqrt(W_up.shape[1])) @ W_down
'''),
    ('11.4', 'two of three: stable and float32, but still activates the up branch',
     'The wrong branch is activated. (Large numbers and the dtype are', '''
def repaired_patient(x, W_gate, W_up, W_down):
    gate = x @ W_gate
    up = x @ W_up
    p = gate * (up / 2 * (1 + np.tanh(up / 2)))
    return p / math.sqrt(W_up.shape[1]) @ W_down
'''),
    ('11.4', 'removes the division by sqrt(d_ff) as well',
     'The division by sqrt(d_ff) got lost.', '''
def repaired_patient(x, W_gate, W_up, W_down):
    gate = x @ W_gate
    up = x @ W_up
    p = silu(gate) * up
    return p @ W_down
'''),
]

RIGHT = [
    ('1.1', 'flattened tokens, list comprehension over tokens, reshape back, other parameter names', '''
def lift(tokens, W, b):
    d_model, d_ff = W.shape
    flat = tokens.reshape(-1, d_model)
    rows = [sum(flat[t, i] * W[i] for i in range(d_model)) + b for t in range(len(flat))]
    return np.array(rows, dtype=np.result_type(tokens, W, b)).reshape(tokens.shape[:-1] + (d_ff,))
'''),
    ('1.1', 'bias as one more row of W1, a 1 appended to every token', '''
def lift(x, W1, b1):
    ones = np.ones_like(x[..., :1])
    return np.concatenate([x, ones], axis=-1) @ np.vstack([W1, b1])
'''),
    ('1.2', 'einsum first, division afterwards', '''
def mix(weights, values):
    unnormalised = np.einsum("ts,sd->td", weights, values)
    return unnormalised / np.sum(weights, axis=1)[:, None]
'''),
    ('1.2', 'np.average for each set, returns a list of rows', '''
def mix(weights, values):
    return [np.average(values, axis=0, weights=w) for w in weights]
'''),
    ('1.3', 'rows, then transposed back, as a lambda', '''
lift_columns = lambda X, W, b: (X.T @ W.T + b).T
'''),
    ('1.3', 'nested list comprehension, returns a nested list of NumPy numbers', '''
def lift_columns(X, W, b):
    d_model, T = X.shape
    return [[sum(W[j, i] * X[i, t] for i in range(d_model)) + b[j] for t in range(T)] for j in range(len(W))]
'''),
    ('1.4', 'really with columns: transposes, multiplies from the left, transposes back', '''
def repaired_lift(x, W1, b1):
    columns = x.T
    lifted_columns = W1.T @ columns + b1[:, np.newaxis]
    return lifted_columns.T
'''),
    ('1.4', 'np.apply_along_axis, one token at a time', '''
def repaired_lift(tokens, weight, bias):
    def one(token):
        return token @ weight + bias
    return np.apply_along_axis(one, 1, tokens)
'''),
    ('2.1', 'np.clip', '''
def my_relu(h):
    return np.clip(h, 0, None)
'''),
    ('2.1', 'loop over the flat copy', '''
def my_relu(h):
    result = np.array(h)              # a copy
    flat = result.reshape(-1)
    for i in range(flat.size):
        if flat[i] < 0:
            flat[i] = 0
    return flat.reshape(result.shape)
'''),
    ('2.2', 'exp of -|h| only, two cases', '''
def my_silu(h):
    e = np.exp(-np.abs(h))            # never larger than 1
    return np.where(h >= 0, h / (1 + e), h * e / (1 + e))
'''),
    ('2.2', 'naive formula under np.errstate: inf is harmless here, no warning appears', '''
def my_silu(h):
    with np.errstate(over="ignore"):
        return h / (1 + np.exp(-h))
'''),
    ('2.3', 'brackets multiplied out, numbers computed beforehand, no power', '''
def my_gelu_tanh(h):
    return h * (0.5 + 0.5 * np.tanh(h * (0.7978845608028654 + 0.035677408136300125 * h * h)))
'''),
    ('2.3', 'math.tanh number by number over the flat array, dtype put back', '''
def my_gelu_tanh(h):
    h = np.asarray(h)
    c = (2 / math.pi) ** 0.5
    out = [0.5 * v * (1 + math.tanh(c * (v + 0.044715 * v ** 3))) for v in h.ravel().tolist()]
    return np.array(out, dtype=np.result_type(h.dtype, np.float16)).reshape(h.shape)
'''),
    ('2.4', 'out= writes into the fresh h', '''
def repaired_ffn(x, W1, b1, W2, b2):
    h = x @ W1 + b1
    np.maximum(h, 0, out=h)
    return h @ W2 + b2
'''),
    ('2.4', 'sum over the hidden units', '''
def repaired_ffn(x, W1, b1, W2, b2):
    y = np.zeros_like(x[..., :1]) + b2
    for j in range(b1.shape[0]):
        unit = np.sum(x * W1[:, j], axis=-1, keepdims=True) + b1[j]
        y = y + np.where(unit > 0, unit, 0) * W2[j]
    return y
'''),
    ('3.1', 'silu written out with tanh, np.multiply', '''
def gated(g, u):
    opened = g * (np.tanh(g / 2) + 1) / 2
    return np.multiply(u, opened)
'''),
    ('3.1', 'einsum for a product number by number', '''
gated = lambda gate, up: np.einsum("...f,...f->...f", silu(gate), up)
'''),
    ('3.2', 'one einsum at the end for product and way down', '''
def swiglu(x, A, B, C):
    g = silu(np.einsum("...i,ij->...j", x, A))
    u = np.einsum("...i,ij->...j", x, B)
    return np.einsum("...j,...j,jk->...k", g, u, C)
'''),
    ('3.2', 'flattened tokens, loop over the hidden units, reshape back', '''
def swiglu(x, W_gate, W_up, W_down):
    flat = x.reshape(-1, x.shape[-1])
    y = 0
    for wg, wu, wd in zip(W_gate.T, W_up.T, W_down):
        hidden = silu(flat @ wg) * (flat @ wu)        # (tokens,)
        y = y + np.outer(hidden, wd)
    return y.reshape(x.shape[:-1] + (W_down.shape[1],))
'''),
    ('3.3', 'last axis reshaped to (2, d_ff)', '''
def swiglu_fused(x, W_in, W_down):
    both = (x @ W_in).reshape(x.shape[:-1] + (2, W_down.shape[0]))
    return (silu(both[..., 0, :]) * both[..., 1, :]) @ W_down
'''),
    ('3.3', 'np.apply_along_axis with a function for one token', '''
def swiglu_fused(x, W_in, W_down):
    half = W_in.shape[1] // 2
    def one_token(v):
        h = v @ W_in
        return np.dot(silu(h[:half]) * h[half:], W_down)
    return np.apply_along_axis(one_token, -1, x)
'''),
    ('3.4', 'einsum with the (out, in) matrices as they are', '''
def repaired_llama(x, w1, w2, w3):
    gate = np.einsum("...d,fd->...f", x, w1)
    up = np.einsum("...d,fd->...f", x, w3)
    return np.einsum("...f,df->...d", silu(gate) * up, w2)
'''),
    ('3.4', 'np.inner, one line, other parameter names', '''
def repaired_llama(t, gate_proj, down_proj, up_proj):
    return np.inner(np.inner(t, up_proj) * silu(np.inner(t, gate_proj)), down_proj)
'''),
    ('4.1', 'builds the four arrays and adds their sizes', '''
def count_parameters(d_model, d_ff):
    arrays = [np.zeros((d_model, d_ff)), np.zeros(d_ff), np.zeros((d_ff, d_model)), np.zeros(d_model)]
    return sum(array.size for array in arrays)
'''),
    ('4.1', 'each matrix with its bias as one more row', '''
def count_parameters(n, m):
    return (n + 1) * m + (m + 1) * n
'''),
    ('4.2', 'einsum without a sum', '''
def writes(a, W2):
    return np.einsum("tj,jd->tjd", a, W2)
'''),
    ('4.2', 'a diagonal matrix for each token, list comprehension', '''
def writes(a, W2):
    return np.stack([np.diag(row) @ W2 for row in a])
'''),
    ('4.3', 'np.apply_along_axis with a function for one token', '''
def relu_ffn(x, W1, b1, W2, b2):
    def token_ffn(v):
        h = v @ W1 + b1
        alive = h > 0
        return h[alive] @ W2[alive] + b2
    return np.apply_along_axis(token_ffn, -1, x)
'''),
    ('4.3', '(h + |h|) / 2 as ReLU, np.tensordot', '''
def relu_ffn(inp, w_in, bias_in, w_out, bias_out):
    h = np.tensordot(inp, w_in, axes=1) + bias_in
    h = (h + abs(h)) / 2
    return np.tensordot(h, w_out, axes=1) + bias_out
'''),
    ('4.4', 'np.take, returns a list', '''
def reordered(W1, b1, W2, order):
    return [np.take(W1, order, axis=1), np.take(b1, order), np.take(W2, order, axis=0)]
'''),
    ('4.4', 'loop over the new units, copies part by part', '''
def reordered(W1, b1, W2, order):
    nW1, nb1, nW2 = W1.copy(), b1.copy(), W2.copy()
    for new, old in enumerate(order):
        nW1[:, new] = W1[:, old]
        nb1[new] = b1[old]
        nW2[new, :] = W2[old, :]
    return nW1, nb1, nW2
'''),
    ('5.1', 'plain Python list, count', '''
def share_of_zeros(a):
    numbers = np.ravel(a).tolist()
    return numbers.count(0) / len(numbers)
'''),
    ('5.1', '1 minus the share of the nonzero ones', '''
def share_of_zeros(a):
    return 1 - np.count_nonzero(a) / np.size(a)
'''),
    ('5.2', 'argsort and take_along_axis', '''
def top_energy(a, share):
    e = a ** 2
    k = round(share * e.shape[-1])
    best = np.argsort(-e, axis=-1)[:, :k]
    return np.take_along_axis(e, best, axis=-1).sum(axis=-1) / np.sum(e, axis=-1)
'''),
    ('5.2', 'row by row, returns a list of numbers', '''
def top_energy(hidden, portion):
    answer = []
    for row in hidden:
        e = np.sort(row * row)[::-1]
        k = round(portion * e.size)
        answer.append(e[:k].sum() / e.sum())
    return answer
'''),
    ('5.3', 'lengths with einsum and sqrt', '''
def typical_change(y_new, y):
    d = y_new - y
    ratio2 = np.einsum("td,td->t", d, d) / np.einsum("td,td->t", y, y)
    return np.median(np.sqrt(ratio2))
'''),
    ('5.3', "loop over tokens and Python's statistics.median", '''
def typical_change(after, before):
    from statistics import median
    changes = []
    for v_new, v in zip(after, before):
        changes.append(np.linalg.norm(v_new - v) / np.linalg.norm(v))
    return median(changes)
'''),
    ('5.4', 'einsum with the (out, in) matrices as they are', '''
def repaired_bert(x, tensors):
    def linear(v, name):
        return np.einsum("...i,oi->...o", v, tensors[name + ".weight"]) + tensors[name + ".bias"]
    return linear(gelu(linear(x, "intermediate.dense")), "output.dense")
'''),
    ('5.4', 'flattened tokens as columns, transposed back', '''
def repaired_bert(x, tensors):
    t = tensors
    cols = x.reshape(-1, x.shape[-1]).T
    hidden = gelu(t["intermediate.dense.weight"] @ cols + t["intermediate.dense.bias"][:, None])
    out = t["output.dense.weight"] @ hidden + t["output.dense.bias"][:, None]
    return out.T.reshape(x.shape)
'''),
    ('6.1', 'counts up the bytes of a token in loops', '''
def tokens_that_fit(free, n_layers, n_heads, d_head, n_bytes):
    one = 0
    for _ in range(n_layers):
        for vector in ("key", "value"):
            one += n_heads * d_head * n_bytes
    return int(free // one)
'''),
    ('6.1', 'divides step by step', '''
def tokens_that_fit(memory, L, H, dh, size):
    for part in (size, dh, H, L, 2):
        memory //= part
    return memory
'''),
    ('6.1', 'math.prod and divmod', '''
def tokens_that_fit(free, *sizes):
    tokens, rest = divmod(free, 2 * math.prod(sizes))
    return tokens
'''),
    ('6.2', 'minus minus trick as a lambda', '''
round_up = lambda n, multiple_of: -(-n // multiple_of) * multiple_of
'''),
    ('6.2', 'adds what is missing', '''
def round_up(n, multiple_of):
    missing = (multiple_of - n % multiple_of) % multiple_of
    return n + missing
'''),
    ('6.3', 'hsplit and vsplit', '''
def device_part(W_fused, W_down, k, n):
    W_gate, W_up = np.hsplit(W_fused, 2)
    return np.hsplit(W_gate, n)[k], np.hsplit(W_up, n)[k], np.vsplit(W_down, n)[k]
'''),
    ('6.3', 'one reshape of the fused matrix, a list comes back', '''
def device_part(W_fused, W_down, k, n):
    d, f = W_fused.shape[0], W_down.shape[0]
    gates, ups = W_fused.reshape(d, 2, n, f // n)[:, :, k].transpose(1, 0, 2)
    return [gates, ups, W_down.reshape(n, f // n, d)[k]]
'''),
    ('6.3', 'index array, np.take', '''
def device_part(W, D, k, n):
    f = len(D)
    units = np.arange(f).reshape(n, -1)[k]
    return np.take(W, units, axis=1), np.take(W, f + units, axis=1), D[units]
'''),
    ('6.4', 'dict of shapes and math.prod', '''
def repaired_block_parameters(d_model, d_ff, n_heads, n_kv_heads):
    head = d_model // n_heads
    shapes = {
        "W_q": (d_model, n_heads * head), "W_k": (d_model, n_kv_heads * head),
        "W_v": (d_model, n_kv_heads * head), "W_o": (n_heads * head, d_model),
        "gate": (d_model, d_ff), "up": (d_model, d_ff), "down": (d_ff, d_model),
    }
    return sum(math.prod(s) for s in shapes.values())
'''),
    ('6.4', 'one line, factored', '''
def repaired_block_parameters(d, f, h, kv):
    return d * (2 * d + 2 * d * kv // h + 3 * f)
'''),
    ('7.1', 'fills it number by number', '''
def centring_matrix(d):
    C = np.zeros((d, d))
    for i in range(d):
        for j in range(d):
            C[i, j] = (1 if i == j else 0) - 1 / d
    return C
'''),
    ('7.1', 'subtracts the mean of each row of the identity', '''
def centring_matrix(size):
    eye = np.eye(size)
    return eye - eye.mean(axis=1, keepdims=True)
'''),
    ('7.1', 'identity minus an outer product', '''
def centring_matrix(d):
    u = np.ones(d) / np.sqrt(d)
    return np.identity(d) - np.outer(u, u)
'''),
    ('7.2', 'transposes twice, einsum for the bias', '''
def fold_norm(gain, bias, W1, b1):
    return (W1.T * gain).T, np.einsum("i,ij->j", bias, W1) + b1
'''),
    ('7.2', 'sends the rows of an identity and a zero through the lift', '''
def fold_norm(gain, bias, W1, b1):
    lift = lambda z: (z * gain + bias) @ W1 + b1
    b = lift(np.zeros_like(gain))
    W = np.stack([gain[i] * W1[i] for i in range(len(gain))])
    return W, b
'''),
    ('7.2', 'loop over the rows, b collected on the way', '''
def fold_norm(g, beta, W1, b1):
    W, b = np.empty_like(W1), b1.copy()
    for i, row in enumerate(W1):
        W[i] = g[i] * row
        b += beta[i] * row
    return W, b
'''),
    ('7.3', 'exp first, np.tril afterwards, then each row divided by its sum', '''
def causal_weights(scores):
    e = np.tril(np.exp(scores))
    return e / np.einsum("...ts->...t", e)[..., np.newaxis]
'''),
    ('7.3', 'loop over the rows t of all batches at once', '''
def causal_weights(s):
    w = np.exp(s)
    for t in range(s.shape[-1]):
        w[..., t, t + 1:] = 0
        w[..., t, :] = w[..., t, :] / w[..., t, :].sum(axis=-1, keepdims=True)
    return w
'''),
    ('7.4', 'lambda with a walrus', '''
repaired_block = lambda x, attend, ffn, norm1, norm2: (h := x + attend(norm1(x))) + ffn(norm2(h))
'''),
    ('7.4', 'loop over the (norm, part) pairs', '''
def repaired_block(x, attend, ffn, norm1, norm2):
    stream = x.copy()
    for norm, part in [(norm1, attend), (norm2, ffn)]:
        stream = stream + part(norm(stream))
    return stream
'''),
    ('8.1', 'loop with a running total', '''
def nats(probabilities, targets):
    total = 0
    for row, target in zip(probabilities, targets):
        total -= np.log(row[target])
    return total / len(targets)
'''),
    ('8.1', 'one-hot mask as booleans', '''
def nats(probabilities, targets):
    hot = np.arange(probabilities.shape[1]) == np.asarray(targets)[:, None]
    return np.log(1 / probabilities[hot]).sum() / len(hot)
'''),
    ('8.2', 'pure Python: max with a key', '''
def accuracy(scores, targets):
    hits = [max(range(len(s)), key=lambda c: s[c]) == t for s, t in zip(scores, targets)]
    return sum(hits) / len(hits)
'''),
    ('8.2', 'one-liner that counts the differences that are not 0', '''
accuracy = lambda s, t: 1 - np.count_nonzero(np.argmax(s, axis=-1) - t) / len(t)
'''),
    ('8.3', 'np.logaddexp.reduce', '''
def loss_from_scores(scores, targets):
    log_sum = np.logaddexp.reduce(scores, axis=1)
    right = np.take_along_axis(scores, np.asarray(targets)[:, None], axis=1)[:, 0]
    return np.mean(log_sum - right)
'''),
    ('8.3', 'loops with the math module', '''
def loss_from_scores(scores, targets):
    losses = []
    for row, t in zip(scores.tolist(), targets):
        biggest = max(row)
        losses.append(math.log(sum(math.exp(s - biggest) for s in row)) + biggest - row[t])
    return math.fsum(losses) / len(losses)
'''),
    ('8.4', 'two ReLU units written by hand on the sum of the bits', '''
def repaired_xor(x):
    s = x @ np.array([1, 1])
    return np.maximum(s, 0) - 2 * np.maximum(s - 1, 0)
'''),
    ('8.4', 'other weights: unit 0 = a - b, unit 1 = b - a, added', '''
def repaired_xor(x):
    hidden = np.einsum("...i,ij->...j", x, np.array([[1, -1], [-1, 1]])).clip(0)
    return hidden.sum(axis=-1)
'''),
    ('9.1', 'np.heaviside', '''
def relu_backward(dy, h):
    return dy * np.heaviside(h, 0)
'''),
    ('9.1', 'copy, then crossing out, other parameter names', '''
def relu_backward(grad, before):
    out = np.array(grad)
    out[~(before > 0)] = 0
    return out
'''),
    ('9.2', 'three einsums, returned as a list', '''
def linear_backward(x, W, dy):
    return [np.einsum("tj,ij->ti", dy, W), np.einsum("ti,tj->ij", x, dy), np.einsum("tj->j", dy)]
'''),
    ('9.2', 'token by token with outer products', '''
def linear_backward(x, W, dy):
    dx = np.stack([W @ g for g in dy])
    dW = sum(np.outer(a, g) for a, g in zip(x, dy))
    db = sum(dy)
    return dx, dW, db
'''),
    ('9.3', 'unit vectors from np.eye', '''
def slopes(f, w, step):
    moves = step * np.eye(w.size).reshape(w.size, *w.shape)
    return np.array([(f(w + m) - f(w - m)) / (2 * step) for m in moves]).reshape(w.shape)
'''),
    ('9.3', 'one working copy, flat index, each number put back', '''
def slopes(func, w, h):
    work = w.copy()
    res = []
    for n in range(w.size):
        keep = work.flat[n]
        work.flat[n] = keep + h
        up = func(work)
        work.flat[n] = keep - h
        down = func(work)
        work.flat[n] = keep
        res.append((up - down) / h * 0.5)
    return np.reshape(res, w.shape)
'''),
    ('9.4', 'sigmoid written with tanh, nothing imported', '''
def repaired_backward(dp, gate, up):
    s = (1 + np.tanh(gate / 2)) / 2
    return dp * up * (s + gate * s * (1 - s)), dp * gate * s
'''),
    ('9.4', 'with silu in the slope: sigmoid + silu * (1 - sigmoid), as a list', '''
def repaired_backward(dp, g, u):
    a, s = silu(g), sigmoid(g)
    return [np.multiply(dp, u) * (s + a * (1 - s)), np.multiply(dp, a)]
'''),
    ('10.1', "Python's sorted on each row, reshaped back", '''
def top_k(probabilities, k):
    n = probabilities.shape[-1]
    rows = [sorted(range(n), key=lambda e: -row[e])[:k] for row in probabilities.reshape(-1, n)]
    return np.array(rows).reshape(probabilities.shape[:-1] + (k,))
'''),
    ('10.1', 'k times argmax on a copy', '''
def top_k(probabilities, k):
    left, picks = probabilities.copy(), []
    for _ in range(k):
        best = left.argmax(axis=-1, keepdims=True)
        np.put_along_axis(left, best, -np.inf, axis=-1)
        picks.append(best)
    return np.concatenate(picks, axis=-1)
'''),
    ('10.2', 'softmax over the chosen scores only (the same weights), returns a list of rows', '''
def moe(x, W_router, experts, k):
    rows = []
    for token in x:
        s = token @ W_router
        best = np.argsort(-s)[:k]
        w = np.exp(s[best] - s[best].max())
        w = w / w.sum()
        rows.append(sum(w[j] * experts[e](token) for j, e in enumerate(best)))
    return rows
'''),
    ('10.2', 'loop over experts with a table of weights that is 0 for the others', '''
def moe(x, W_router, experts, k):
    p = softmax(x @ W_router)
    chosen = np.argsort(-p, axis=1)[:, :k]
    table = np.zeros_like(p)
    np.put_along_axis(table, chosen, np.take_along_axis(p, chosen, 1), 1)
    table = table / table.sum(axis=1, keepdims=True)
    y = np.zeros_like(x)
    for e, expert in enumerate(experts):
        for t in np.flatnonzero((chosen == e).any(axis=1)):
            y[t] = y[t] + table[t, e] * expert(x[t])
    return y
'''),
    ('10.3', 'the mean of P over all choices: sum of f * P without counting', '''
def balancing_loss(probabilities, choices):
    P = probabilities.mean(axis=0)
    return len(P) * P[choices].mean()
'''),
    ('10.3', 'one-hot comparison and a dot product', '''
def balancing_loss(probabilities, choices):
    T, n = probabilities.shape
    f = (choices[:, :, None] == np.arange(n)).mean(axis=(0, 1))
    return n * np.dot(f, np.ones(T) @ probabilities / T)
'''),
    ('10.4', 'conditional expression as the divisor', '''
def repaired_weights(p, k):
    best = np.flip(np.sort(p, axis=-1), axis=-1)[..., :k]
    return best / (1 if k == 1 else best.sum(axis=-1, keepdims=True))
'''),
    ('10.4', 'apply_along_axis with sorted', '''
def repaired_weights(probabilities, k):
    def one(row):
        top = np.array(sorted(row, reverse=True)[:k])
        return top if k == 1 else top / top.sum()
    return np.apply_along_axis(one, -1, probabilities)
'''),
    ('11.1', 'all() over the two types', '''
keeps_dtype = lambda layer, x: all(layer(x.astype(t)).dtype == t for t in (np.float32, np.float64))
'''),
    ('11.1', 'compares lists of dtype names', '''
def keeps_dtype(f, a):
    names = ["float32", "float64"]
    got = [str(f(np.array(a, dtype=n)).dtype) for n in names]
    return got == names
'''),
    ('11.2', 'random replacement of each token, a set of bools', '''
def mixes_tokens(layer, x):
    rng = np.random.default_rng(0)
    y = layer(x.copy())
    found = set()
    for t in range(len(x)):
        z = x.copy()
        z[t] = 3 * rng.normal(size=x.shape[1])
        rest = np.arange(len(x)) != t
        found.add(bool((layer(z)[rest] != y[rest]).any()))
    return True in found
'''),
    ('11.2', 'a table of who influences whom, its diagonal ignored', '''
def mixes_tokens(layer, x):
    T, d = x.shape
    base = layer(np.copy(x))
    influence = np.zeros((T, T))
    for source in range(T):
        for move in (np.linspace(1, 3, d) ** 2, -np.linspace(1, 3, d) ** 2):
            changed = np.copy(x)
            changed[source] += move.astype(x.dtype)
            influence[source] += np.abs(layer(changed) - base).reshape(T, -1).sum(axis=1)
    np.fill_diagonal(influence, 0)
    return bool(influence.max() > 0)
'''),
    ('11.3', 'snapshot as a nested list', '''
def changes_input(layer, x):
    snapshot = x.tolist()
    layer(x)
    return snapshot != x.tolist()
'''),
    ('11.3', 'lets the layer work on a copy and compares the copy with x', '''
def changes_input(layer, x):
    victim = np.array(x)
    layer(victim)
    return bool(np.any(victim != x))
'''),
    ('11.4', "tanh form, the useless bias kept but in x's dtype", '''
def repaired_patient(x, W_gate, W_up, W_down):
    half = x @ W_gate / 2
    p = (half + half * np.tanh(half)) * (x @ W_up)
    bias = np.zeros(W_down.shape[1], dtype=x.dtype)
    return p @ W_down / math.sqrt(len(W_down)) + bias
'''),
    ('11.4', "token by token with apply_along_axis and the library's silu", '''
def repaired_patient(x, A, B, C):
    d_ff = C.shape[0]
    def token(v):
        return np.matmul(silu(v @ A) * (v @ B) * (1 / d_ff ** 0.5), C)
    return np.apply_along_axis(token, -1, x)
'''),
]
