/* What the page's terms mean: shown where a pointer or the keyboard rests on
 * one, and listed at the end for phones and paper. Keys are lower case. */
const TERMS = {
    'accuracy': 'Share of the test set that a model classifies rightly.',
    'adopted': 'A restarted peer took a neighbour\'s model in place of its own old one.',
    'arithmetic': 'Floating point operations per second that the model needs: a forward pass and twice that back.',
    'attempts': 'Times that a peer wanted to exchange models.',
    'averaged model': 'The mean of the models of all live peers, tested as one model. Nobody holds it during the run; it is what the cluster would agree on.',
    'band': 'Of peers: from the value that a tenth of them are below to the one that a tenth are above, over all peers. Of seeds: one standard deviation to either side of the mean.',
    'busy': 'The asked peer was in another exchange. As usual, and no loss: who asked trained on, and asked another peer or again later.',
    'bytes sent': 'What a peer put on the wire, framing and acknowledgements included; the mean over peers.',
    'clipped': 'A guard let only a part of a received model in, because it lay too far off.',
    'consensus distance': 'How far a peer\'s model x is from the mean of all: |x − mean|. 0: all peers hold one model.',
    'crash': 'The peer\'s process ends and loses its memory, until it restarts.',
    'cut': 'Nothing passes from one peer to another, in this direction, until it heals. A link that is seen to be down is not tried: its turns go to other neighbours, so few exchanges fail on it.',
    'data wait': 'Time in which training steps waited for their batch.',
    'done': 'Exchanges that both ends completed.',
    'epochs': 'How often the training set has been passed over, by all peers together.',
    'exchange': 'Two peers send each other their models and average them.',
    'exchange overlap': 'Share of the time with an exchange under way in which a training step ran as well.',
    'exchanges done': 'Exchanges that both ends completed, of a peer\'s process: after a crash it counts from 0, while the run\'s total has all.',
    'failed': 'Exchanges that were given up, for a peer or a link was gone or late. Neither model was changed, and training went on.',
    'gated': 'A model that was not finite, or had another shape, was refused.',
    'idle': 'Time in which an exchange is open and no model moves.',
    'loss': 'What training makes small. Of peers on the batches that they see, of the averaged model on the test set.',
    'memory': 'Resident memory of a process, at most.',
    'mfu': 'Model FLOP utilisation: arithmetic of the model as a share of the processor\'s measured peak.',
    'pause': 'The peer stands still and keeps its memory, until it resumes.',
    'rejected': 'A guard left a received model out, because it lay too far off.',
    'samples': 'Training examples seen, by all peers together.',
    'skipped': 'A peer\'s turn came while its last exchange was still open. As usual: it trained on and waited for the next turn.',
    'slow': 'The peer\'s steps take so many times as long.',
    'speed': 'Training examples per second of one peer.',
    'staleness': 'How old a received model is: own steps when it arrived less its sender\'s when it was sent; 0 where the sender is ahead.',
    'step time': 'Time of one training step, averages and exchanges not counted.',
    'steps': 'Training steps of one peer; of all together, their mean.',
    'test loss': 'Loss on the test set, which no peer trains on.',
    'torn': 'Exchanges that broke so late that one end may have merged and the other not. Counted with what they moved; averaging goes on.',
    'utilisation': 'Time in training steps as a share of the time until a peer was done.',
    'utilisation (mfu)': 'Model FLOP utilisation: arithmetic of the model as a share of the processor\'s measured peak.',
    'waiting': 'Time in which training was held back for others.',
};

/* Text that explains itself, or plain text where there is nothing to explain. */
function term(text) {
    const key = String(text).toLowerCase();
    return Object.hasOwn(TERMS, key)
        ? make('abbr', {title: TERMS[key], tabindex: 0}, text) : String(text);
}

function glossary() {
    return make('details', {id: 'terms'}, make('summary', {}, 'Terms'),
        make('dl', {class: 'terms'}, Object.keys(TERMS).sort().map(key =>
            make('div', {}, make('dt', {}, key), make('dd', {}, TERMS[key])))));
}

/* Nothing can be hovered on paper. */
addEventListener('beforeprint', () => { document.getElementById('terms').open = true; }, {signal: kept.signal});
