"""How fast the page of a thousand peers is, in a headless Chromium:

accept_page.py PAGE     opens it, moves the slider, changes the axis, zooms;
                        says the size, the time to open and frames a second

A frame is one that the browser's compositor drew, counted in its trace between
the first input and the end of the last. Where nothing changes nothing is drawn:
a pixel that changes at every frame makes each of them count that the page left
time for.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)),
                                "../integration"))
from browser import Browser  # noqa: E402

BYTES_MAX, OPEN_MAX_S, FRAMES_MIN = 5_000_000, 2.0, 20


def cpu_s(page):
    """CPU seconds of the browser's processes: what a busy machine leaves as it
    is, where frames and seconds do not."""
    tree, used = {page.process.pid}, 0
    stats = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii",
                      errors="replace") as file:
                words = file.read().rpartition(")")[2].split()
        except OSError:
            continue
        stats.append((int(pid), int(words[1]), int(words[11]) + int(words[12])))
    for pid, parent, ticks in sorted(stats):
        if pid in tree or parent in tree:
            tree.add(pid)
            used += ticks
    return used / os.sysconf("SC_CLK_TCK")


def traced(page, act):
    """Frames, seconds of `act`, and the longest time without a frame."""
    page.events.clear()
    page.call("Tracing.start", transferMode="ReportEvents",
              categories="devtools.timeline.frame,disabled-by-default-devtools"
                         ".timeline,disabled-by-default-devtools.timeline.frame"
                         ",devtools.timeline,blink.user_timing")
    page.run("""(() => {
        const pixel = document.body.appendChild(document.createElement('i'));
        pixel.style = 'position:fixed;top:0;left:0;width:1px;height:1px';
        window.stop_ticking = false;
        let odd = false;
        const tick = () => {
            odd = !odd;
            pixel.style.background = odd ? '#000' : '#fff';
            if (window.stop_ticking) pixel.remove();
            else requestAnimationFrame(tick);
        };
        tick();
        performance.mark('begin');
    })()""")
    act()
    page.run("new Promise(done => requestAnimationFrame(() => "
             "requestAnimationFrame(() => { performance.mark('end'); done(); "
             "})))")
    page.run("window.stop_ticking = true")
    page.call("Tracing.end")
    page.wait("Tracing.tracingComplete")
    events = [one for event in page.events
              if event["method"] == "Tracing.dataCollected"
              for one in event["params"]["value"]]
    begin, end = (next(one["ts"] for one in events if one["name"] == name)
                  for name in ("begin", "end"))
    frames = sorted({one["ts"] for one in events
                     if one["name"] == "DrawFrame" and
                     begin <= one["ts"] <= end})
    edges = [begin, *frames, end]
    longest = max(b - a for a, b in zip(edges, edges[1:]))
    return len(frames), (end - begin) / 1e6, longest / 1e6


def place(page, selector):
    page.run(f"document.querySelector({selector!r})"
             ".scrollIntoView({block: 'center'})")
    return page.run(f"(() => {{ const b = document.querySelector({selector!r})"
                    ".getBoundingClientRect(); return [b.x, b.y, b.width, "
                    "b.height]; })()")


def dragged(page, selector, steps=40):
    x, y, width, height = place(page, selector)
    page.mouse("mousePressed", x + 4, y + height / 2, "left", clickCount=1,
               buttons=1)
    for k in range(steps):
        page.mouse("mouseMoved", x + 4 + (width - 8) * k / steps,
                   y + height / 2, "left", buttons=1)
        time.sleep(0.025)
    page.mouse("mouseReleased", x + width - 8, y + height / 2, "left",
               clickCount=1)


def hovered(page, selector, steps=40):
    x, y, width, height = place(page, selector)
    for k in range(steps):
        page.mouse("mouseMoved", x + 70 + (width - 90) * k / steps,
                   y + height / 2)
        time.sleep(0.025)


def axes(page):
    """The time from a click on an axis until all plots are drawn on it."""
    longest = 0
    for axis in ("steps", "bytes", "time"):
        before = time.monotonic()
        page.run(f"document.querySelector('input[value={axis}]').click()")
        page.run("new Promise(done => requestAnimationFrame(() => "
                 "requestAnimationFrame(done)))")
        longest = max(longest, time.monotonic() - before)
    return longest


def main(path):
    good = True

    def say(what, measured, bound, holds, unit):
        nonlocal good
        good = good and holds
        print(f"{what}: expected {bound} {unit}, measured {measured:.4g}")

    size = os.path.getsize(path)
    say("size", size, f"<= {BYTES_MAX}", size <= BYTES_MAX, "bytes")
    with Browser() as page:
        page.open("about:blank")
        before = cpu_s(page)
        page.open("file://" + os.path.abspath(path))
        page.until("document.body.dataset.ready === 'yes'")
        opened = page.run(
            "performance.getEntriesByType('navigation')[0].loadEventEnd") / 1e3
        say("opens", opened, f"<= {OPEN_MAX_S}", opened <= OPEN_MAX_S, "s")
        page.until("document.body.dataset.whole === 'yes'", 10)
        print(f"all of it is drawn after {page.run('performance.now()') / 1e3:.2f}"
              f" s at most; CPU {cpu_s(page) - before:.2f} s; load "
              f"{os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
        for what, act in (
                ("slider", lambda: dragged(page, "#slot")),
                ("zoom by dragging", lambda: dragged(
                    page, "#chart-consensus_distance .plot")),
                ("pointer over a plot", lambda: hovered(
                    page, "#chart-accuracy .plot"))):
            before = cpu_s(page)
            frames, seconds, longest = traced(page, act)
            rate = frames / seconds
            say(f"{what}, {frames} frames in {seconds:.2f} s, at most "
                f"{1000 * longest:.0f} ms without one, CPU "
                f"{cpu_s(page) - before:.2f} s", rate,
                f">= {FRAMES_MIN}", rate >= FRAMES_MIN, "a second")
        print(f"another axis: all plots within {1000 * axes(page):.0f} ms")
    return good


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) is False)
