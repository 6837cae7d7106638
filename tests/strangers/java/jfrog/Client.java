// SPDX-License-Identifier: GPL-3.0-or-later
// What JFrog's own client for Java makes of a repository manager: a line for each step.

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.Callable;
import java.util.stream.Collectors;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import org.jfrog.artifactory.client.Artifactory;
import org.jfrog.artifactory.client.ArtifactoryClientBuilder;
import org.jfrog.artifactory.client.ArtifactoryRequest;
import org.jfrog.artifactory.client.ItemHandle;
import org.jfrog.artifactory.client.RepositoryHandle;
import org.jfrog.artifactory.client.impl.ArtifactoryRequestImpl;
import org.jfrog.artifactory.client.model.File;
import org.jfrog.artifactory.client.model.Folder;
import org.jfrog.artifactory.client.model.RepoPath;
import org.jfrog.artifactory.client.model.impl.RepositoryTypeImpl;

public final class Client {
    private static final String REPO = "generic-staging-local";
    private static final String OTHER = "generic-release-local";
    private static final String SHA1 = "aaf4c61ddcc5e8a2dabede0f3b482cd9aea9434d";

    public static void main(String[] given) {
        Artifactory server = ArtifactoryClientBuilder.create()
            .setUrl(given[0]).setUsername(given[1]).setPassword(given[2]).build();
        RepositoryHandle repo = server.repository(REPO);
        step("ping", () -> server.system().ping());
        step("version", () -> server.system().version().getVersion());
        step("repositories", () -> server.repositories().list(RepositoryTypeImpl.LOCAL).stream()
            .map(each -> each.getKey()).filter(each -> each.startsWith("generic"))
            .sorted().collect(Collectors.joining(" ")));
        step("upload", () -> {
            File file = repo.upload("java/a.txt", stream("hello"))
                .withProperty("build.name", "java").doUpload();
            return file.getSize() + " " + file.getChecksums().getSha256();
        });
        step("download", () -> new String(
            repo.download("java/a.txt").doDownload().readAllBytes(), StandardCharsets.UTF_8));
        ItemHandle item = repo.file("java/a.txt");
        step("info", () -> {
            File file = item.info();
            return file.getSize() + " " + file.getPath() + " " + file.getChecksums().getSha1();
        });
        step("properties", () -> item.getProperties());
        step("set properties", () -> {
            item.properties().addProperty("qa", "passed", "twice").addProperty("b", "x").doSet();
            return item.getProperties().toString();
        });
        step("delete property", () -> item.deleteProperty("b") + " " + item.getProperties());
        step("folder", () -> {
            Folder folder = repo.folder("java").info();
            return folder.getChildren().stream().map(each -> each.getUri())
                .collect(Collectors.joining(" "));
        });
        step("search name", () -> paths(server.searches().artifactsByName("a.txt")
            .repositories(REPO).doSearch()));
        step("search property", () -> paths(server.searches().repositories(REPO)
            .itemsByProperty().property("build.name", "java").doSearch()));
        step("query", () -> {
            ArtifactoryRequest request = new ArtifactoryRequestImpl()
                .method(ArtifactoryRequest.Method.POST).apiUrl("api/search/aql")
                .requestType(ArtifactoryRequest.ContentType.TEXT)
                .responseType(ArtifactoryRequest.ContentType.JSON)
                .requestBody("items.find({\"repo\":\"" + REPO + "\",\"path\":\"java\"})"
                    + ".include(\"name\",\"repo\",\"path\")");
            return server.restCall(request).getRawBody().replaceAll("\\s+", "");
        });
        step("repository", () -> repo.get().getKey() + " " + repo.get().getRclass()
            + " " + repo.exists() + " " + repo.isFolder("java"));
        step("checksum", () -> repo.copyBySha1("java/again.txt", SHA1).doUpload().getSize());
        step("archive", () -> {
            repo.upload("java/in.zip", new ByteArrayInputStream(archive())).doUploadAndExplode(true);
            return repo.download("java/in/one.txt").doDownload().readAllBytes().length;
        });
        step("new folder", () -> repo.folder("java/empty").create().getPath());
        step("copy folder", () -> {
            repo.folder("java").copy(OTHER, "copied");
            return server.repository(OTHER).file("copied/again.txt").info().getPath();
        });
        step("copy", () -> item.copy(OTHER, "java/copy.txt").info() != null);
        step("move", () -> item.move(OTHER, "java/moved.txt").info() != null);
        step("moved away", () -> repo.exists() + " " + repo.file("java/a.txt").info());
        step("delete", () -> server.repository(OTHER).delete("java"));
        step("deleted", () -> server.repository(OTHER).folder("java").info());
        Artifactory administered = ArtifactoryClientBuilder.create()
            .setUrl(given[0]).setUsername("admin").setPassword("admin-password").build();
        step("storage", () -> administered.storage().getStorageInfo().getRepositoriesSummaryList()
            .stream().anyMatch(each -> each.getRepoKey().equals(REPO)));
        administered.close();
        server.close();
    }

    private static byte[] archive() throws Exception {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (ZipOutputStream archive = new ZipOutputStream(bytes)) {
            archive.putNextEntry(new ZipEntry("in/one.txt"));
            archive.write("one".getBytes(StandardCharsets.UTF_8));
        }
        return bytes.toByteArray();
    }

    private static ByteArrayInputStream stream(String text) {
        return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String paths(List<RepoPath> found) {
        return found.stream().map(each -> each.getRepoKey() + "/" + each.getItemPath())
            .sorted().collect(Collectors.joining(" "));
    }

    private static void step(String name, Callable<Object> what) {
        String value;
        try {
            value = String.valueOf(what.call());
        } catch (Exception error) {
            value = "failed: " + error;
        }
        System.out.println(name + "\t" + value.replace("\n", " "));
    }
}
