/* One self-contained page: styles, data, dygraphs and the page's own script.
 *
 * The page's policy allows the two scripts below by their SHA-256 and nothing
 * else: were a hostile name ever to reach the markup, it still could not run
 * or load anything. */
#include "src/results/report/page.h"

#include <sodium.h>
#include <string.h>

#include "kith/asset.h"

KITH_ASSET(dygraph_script, KITH_DYGRAPHS "/dygraph.min.js");
KITH_ASSET(dygraph_style, KITH_DYGRAPHS "/dygraph.min.css");
KITH_ASSET(dygraph_licence, KITH_REPORT_SOURCE "/dygraphs-licence.txt");
KITH_ASSET(page_style, KITH_REPORT_SOURCE "/page/page.css");
#define SCRIPT(name)                                                           \
    KITH_ASSET(page_##name, KITH_REPORT_SOURCE "/page/" #name ".js")
SCRIPT(terms);
SCRIPT(base);
SCRIPT(runs);
SCRIPT(picture);
SCRIPT(plots);
SCRIPT(peers);
SCRIPT(answer);
SCRIPT(tables);
SCRIPT(paired);
SCRIPT(page);
SCRIPT(live);

#define PARTS 14
/* The page's own script: one function around its files, which see each other's
 * names and leave none behind; it is called by live.js, again when the runs
 * have gone on. */
static void own_script(struct kith_asset parts[PARTS])
{
    static const char before[] = "(() => {\n'use strict';\n"
                                 "const showReport = (report, kept) => {\n",
                      between[] = "};\n", after[] = "})();\n";
    const struct kith_asset all[PARTS] = {
        {before, sizeof before - 1}, kith_asset_page_terms(),
        kith_asset_page_base(),      kith_asset_page_runs(),
        kith_asset_page_picture(),   kith_asset_page_plots(),
        kith_asset_page_peers(),     kith_asset_page_answer(),
        kith_asset_page_tables(),    kith_asset_page_paired(),
        kith_asset_page_page(),      {between, sizeof between - 1},
        kith_asset_page_live(),      {after, sizeof after - 1},
    };
    memcpy(parts, all, sizeof all);
}

static void put(FILE *out, struct kith_asset asset)
{
    fwrite(asset.bytes, 1, asset.size, out);
}

static void put_hash(FILE *out, const struct kith_asset *parts, size_t count)
{
    unsigned char hash[crypto_hash_sha256_BYTES];
    char text[sodium_base64_ENCODED_LEN(sizeof hash,
                                        sodium_base64_VARIANT_ORIGINAL)];
    crypto_hash_sha256_state state;

    crypto_hash_sha256_init(&state);
    for (size_t i = 0; i < count; i++)
        crypto_hash_sha256_update(&state, (const unsigned char *)parts[i].bytes,
                                  parts[i].size);
    crypto_hash_sha256_final(&state, hash);
    sodium_bin2base64(text, sizeof text, hash, sizeof hash,
                      sodium_base64_VARIANT_ORIGINAL);
    fprintf(out, " 'sha256-%s'", text);
}

void kith_page_policy(FILE *out, bool follows)
{
    const struct kith_asset library = kith_asset_dygraph_script();
    struct kith_asset own[PARTS];
    own_script(own);
    fprintf(out, "default-src 'none'; style-src 'unsafe-inline'; %sscript-src",
            follows ? "connect-src 'self'; " : "");
    put_hash(out, &library, 1);
    put_hash(out, own, PARTS);
}

void kith_page_begin(FILE *out, bool follows)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"
          "<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"",
          out);
    kith_page_policy(out, follows);
    fputs("\">\n<title>kith report</title>\n<!--\n", out);
    put(out, kith_asset_dygraph_licence());
    fputs("-->\n<style>", out);
    put(out, kith_asset_dygraph_style());
    fputs("</style>\n<style>\n", out);
    put(out, kith_asset_page_style());
    fputs("</style>\n</head>\n<body>\n<noscript>This page draws its plots with "
          "its own script: please allow it. It loads nothing.</noscript>\n"
          "<script type=\"application/json\" id=\"kith-data\">",
          out);
}

void kith_page_end(FILE *out)
{
    struct kith_asset own[PARTS];
    own_script(own);
    fputs("</script>\n<script>", out);
    put(out, kith_asset_dygraph_script());
    fputs("</script>\n<script>", out);
    for (size_t i = 0; i < PARTS; i++)
        put(out, own[i]);
    fputs("</script>\n</body>\n</html>\n", out);
}
